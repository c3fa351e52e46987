# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# tap.sh: the Test Anything Protocol for bash suites. Source it, test, finish:
#
#	#!/usr/bin/env bash
#	# SPDX-License-Identifier: Apache-2.0
#	set -euo pipefail
#	. "$(dirname "$0")/../tap.sh"
#
#	plan_later                                   # optional: resets the counters
#	ok   'true is true' true                     # passes when the command exits 0
#	not_ok 'false is not' false                  # passes when the command exits 1..125 or by signal
#	is   "$(echo hi)" hi 'echo says hi'          # string equality
#	isnt "$got" "$before" 'it moved'             # string inequality
#	like "$got" '^h.$' 'two letters'             # bash extended regular expression
#	unlike "$got" 'secret' 'nothing leaks'
#	status 124 'the clock stops it' glovebox run ...   # exact exit status
#	capture glovebox run -- /bin/true            # sets $OUT, $ERR and $STATUS; never fails
#	pass 'NAME'; fail 'NAME' ['WHY'...]          # verdicts reached by hand
#	soon test -s file                            # waits until the command succeeds; fails after a minute
#	skip 'needs kvm' 'no /dev/kvm here'          # counted as skipped, with the reason
#	skip_all 'needs root'                        # the whole suite: prints the plan and exits
#	diag 'text'                                  # a "# " line
#	finish                                       # prints the plan, exits 1 if anything failed
#
# A failing check prints what was wanted and what came as "# " lines right below its `not ok` line and
# returns 0, so `set -e` does not end the suite: read $TAP_LAST (0 passed, 1 failed) to branch on it.
# A command's own output is shown only when the check fails (the last 40 lines). It inherits standard
# input (`capture cmd <<<text` works); inside a `while read` loop give it `</dev/null`.
# If the suite ends without `finish` (set -e, a crash), the exit trap prints `Bail out!`
# and exits non-zero: a suite cannot be green by stopping early. A suite that needs its own clean-up
# defines a function `tap_cleanup`; it runs on every exit.
# TAP_TMP is a scratch directory that is removed at exit.

# shellcheck disable=SC2034  # OUT, ERR, STATUS and TAP_LAST are read by the suites

TAP_RUN=0
TAP_FAILED=0
TAP_SKIPPED=0
TAP_LAST=0
TAP_FINISHED=0
TAP_TMP=$(mktemp -d "${TMPDIR:-/tmp}/glovebox-tap.XXXXXX")
chmod 755 "$TAP_TMP"
OUT='' ERR='' STATUS=0

_tap_exit() {
	local rc=$?

	trap - EXIT
	set +e
	if declare -F tap_cleanup >/dev/null; then
		tap_cleanup
	fi
	rm -rf -- "$TAP_TMP"
	if [ "$TAP_FINISHED" -eq 0 ]; then
		printf 'Bail out! suite ended early after %d tests (status %d)\n' "$TAP_RUN" "$rc"
		[ "$rc" -ne 0 ] || rc=1
	fi
	exit "$rc"
}
trap _tap_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

plan_later() {
	TAP_RUN=0
	TAP_FAILED=0
	TAP_SKIPPED=0
}

# Prefixes every line with "# ", so that no output of a program under test can be read as a verdict.
diag() {
	local line

	while IFS= read -r line || [ -n "$line" ]; do
		printf '# %s\n' "$line"
	done <<<"$*"
}

# A test's name is one line without '#', which would start a TAP directive.
_tap_name() {
	local name=${1//$'\n'/ }

	printf '%s' "${name//#/}"
}

pass() {
	TAP_RUN=$((TAP_RUN + 1))
	TAP_LAST=0
	printf 'ok %d - %s\n' "$TAP_RUN" "$(_tap_name "$1")"
}

fail() {
	local name=$1 why

	shift
	TAP_RUN=$((TAP_RUN + 1))
	TAP_FAILED=$((TAP_FAILED + 1))
	TAP_LAST=1
	printf 'not ok %d - %s\n' "$TAP_RUN" "$(_tap_name "$name")"
	for why in "$@"; do
		diag "$why"
	done
}

skip() {
	TAP_RUN=$((TAP_RUN + 1))
	TAP_SKIPPED=$((TAP_SKIPPED + 1))
	TAP_LAST=0
	printf 'ok %d - %s # SKIP %s\n' "$TAP_RUN" "$(_tap_name "$1")" "$(_tap_name "$2")"
}

skip_all() {
	printf '1..0 # SKIP %s\n' "$(_tap_name "$1")"
	TAP_FINISHED=1
	exit 0
}

# Sets OUT, ERR and STATUS. Trailing newlines are dropped and NUL bytes removed, as always in bash;
# byte-exact output goes to a file and through cmp.
capture() {
	STATUS=0
	"$@" >"$TAP_TMP/out" 2>"$TAP_TMP/err" || STATUS=$?
	OUT=$(tr -d '\0' <"$TAP_TMP/out")
	ERR=$(tr -d '\0' <"$TAP_TMP/err")
}

# Waits until a command succeeds, however long a busy machine takes for that; what has not happened after a minute never
# happens. Its output is not shown.
soon() {
	local try

	for ((try = 0; try < 1200; try++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	return 1
}

# Runs a command with its output kept aside; TAP_RC is its status.
_tap_quietly() {
	TAP_RC=0
	"$@" >"$TAP_TMP/log" 2>&1 || TAP_RC=$?
}

_tap_log() {
	tail -n 40 -- "$TAP_TMP/log" | tr -d '\0'
}

ok() {
	local name=$1

	shift
	_tap_quietly "$@"
	if [ "$TAP_RC" -eq 0 ]; then
		pass "$name"
	else
		fail "$name" "status $TAP_RC from: $*" "$(_tap_log)"
	fi
}

# 126 and 127 mean that the command could not be run at all: that proves nothing.
not_ok() {
	local name=$1

	shift
	_tap_quietly "$@"
	case $TAP_RC in
	0 | 126 | 127) fail "$name" "status $TAP_RC (a failure was wanted) from: $*" "$(_tap_log)" ;;
	*) pass "$name" ;;
	esac
}

status() {
	local want=$1 name=$2

	shift 2
	_tap_quietly "$@"
	if [ "$TAP_RC" = "$want" ]; then
		pass "$name"
	else
		fail "$name" "status $TAP_RC, wanted $want, from: $*" "$(_tap_log)"
	fi
}

is() {
	if [ "$1" = "$2" ]; then
		pass "$3"
	else
		fail "$3" "     got: $1" "expected: $2"
	fi
}

isnt() {
	if [ "$1" != "$2" ]; then
		pass "$3"
	else
		fail "$3" "     got: $1" "expected: anything else"
	fi
}

# 0 match, 1 none, 2 a broken regular expression, which is a failure in both directions.
_tap_match() {
	[[ $1 =~ $2 ]]
}

like() {
	local rc=0

	_tap_match "$1" "$2" || rc=$?
	if [ "$rc" -eq 0 ]; then
		pass "$3"
	else
		fail "$3" "     got: $1" "expected: text matching $2"
	fi
}

unlike() {
	local rc=0

	_tap_match "$1" "$2" || rc=$?
	if [ "$rc" -eq 1 ]; then
		pass "$3"
	else
		fail "$3" "     got: $1" "expected: no text matching $2"
	fi
}

finish() {
	printf '1..%d\n' "$TAP_RUN"
	TAP_FINISHED=1
	if [ "$TAP_RUN" -eq 0 ]; then
		diag 'no test was run'
		exit 1
	fi
	[ "$TAP_FAILED" -eq 0 ] || exit 1
	exit 0
}

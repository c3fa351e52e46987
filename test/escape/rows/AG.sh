# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# AG: the agent is hostile. attack/AG.c takes the real agent's place in a box, one misdeed per run; the
# host's side is the real one. That needs a breakable build, because the agent is part of the program.

# shellcheck source=test/left.sh
. "$HERE/../left.sh"

# agent DEED [OPTION…]: sets $STATUS, $JSON, $ERR, $RSS (KiB). Whatever the agent does, the host's memory
# stays small, the run ends, and nothing is left.
agent() {
	local deed=$1 glovebox=${GLOVEBOX_BREAKABLE:-$GLOVEBOX}

	shift
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	[[ "$("$glovebox" version)" == *'test build'* ]] || cannot 'needs a build with -Dbreakable=true'
	STATUS=0
	timeout -s KILL 25 "$ATTACKS/attack-AG" host "$deed" "$ROW_TMP/.rss" "$glovebox" run --json "$@" \
		-- /bin/true >"$ROW_TMP/.json" 2>"$ROW_TMP/.err" </dev/null || STATUS=$?
	ERR=$(tr -d '\0' <"$ROW_TMP/.err")
	[ "$STATUS" -ne 137 ] || [ -s "$ROW_TMP/.json" ] || breach "$deed: still there after 25 seconds"
	JSON=$(cat "$ROW_TMP/.json")
	RSS=$(cat "$ROW_TMP/.rss")
	[ -n "$(json .status)" ] || breach "$deed: no result: $ERR"
	[ "$RSS" -lt "${RSS_MAX:-40000}" ] || breach "$deed: the host used $RSS KiB"
	nothing_left "$deed"
}

nothing_left() {
	local left

	left=$(left_behind)
	[ -z "$left" ] || breach "$1: left behind: $left"
	# shellcheck disable=SC2010 # where the links lead, not names
	! ls -l /proc/[0-9]*/exe 2>/dev/null | grep '/memfd:agent ' || breach "$1: the agent still runs"
}

# The stub can speak properly, so what fails a run is the misdeed alone.
agent_polite() {
	agent polite
	[ "$(json '.status + .stdout')" = okpolite ] || breach "a polite agent: $JSON"
}

# Each of these is the end of the run, cleanly and by name.
agent_breaks() {
	local deed

	agent_polite
	for deed in "$@"; do
		agent "$deed"
		[ "$STATUS" -eq 125 ] || breach "$deed: exit status $STATUS"
		[ "$(json .status)" = setup_error ] || breach "$deed: status $(json .status)"
		[[ "$(json .message)" =~ (broke the protocol|is lost|nonsense) ]] ||
			breach "$deed: message $(json .message)"
		[ "$(json .exit_code)" = null ] || breach "$deed: exit code $(json .exit_code)"
	done
}

# Each of these spoils the outputs and nothing else: the message says so, and outside --out all is as
# before. $ROW_TMP/o is what came out of the last one.
agent_spoils() {
	local deed

	for deed in "$@"; do
		rm -rf o
		agent "$deed" --out o
		[ "$(json .stdout)" = polite ] || breach "$deed: stdout $(json .stdout)"
		[[ "$(json .message)" =~ (outputs|was copied) ]] || breach "$deed: message '$(json .message)'"
		[ -z "$(find . /tmp/escaped -name '*escaped*' 2>/dev/null)" ] || breach "$deed: wrote outside"
	done
}

AG_01() { agent_breaks len-zero len-huge len-lie len-short len-over empty; }

AG_02() { agent_breaks half half-later; }

AG_03() { agent_breaks type-none type-far type-file type-ours type-exec reserved reserved-later size-off out-empty; }

# Identity is the socket: there is no id to forge, only an end that cannot be taken back.
AG_04() {
	agent_polite
	agent exit-twice
	[ "$STATUS $(json .exit_code)" = '0 0' ] || breach "the second EXIT counted: $JSON"
	agent out-after-exit
	[[ $JSON != *AFTERWARDS* ]] || breach "output after EXIT"
}

AG_05() {
	agent_breaks out-first exit-first started-twice failed-late file-here
	agent_spoils get-up get-inside-file get-data-alone get-out-frame get-early-end get-link
}

AG_06() {
	agent_breaks exit-256 exit-min exit-minus exit-both exit-none exit-sig65 exit-sigminus exit-core2 \
		exit-zero
	local deed
	for deed in failed-err0 failed-errmin failed-step; do
		agent "$deed"
		[[ "$(json .status) $STATUS" =~ ^(error 126|setup_error 125)$ ]] || breach "$deed: $JSON"
	done
	agent get-modes --out o
	[ "$(json '.outputs | map("\(.path) \(.size)") | join(",")')" = 'setuid 1,liar 4' ] ||
		breach "outputs: $(json .outputs)"
	[ "$(cd o && find . -perm /7000)" = '' ] || breach "a set-id or sticky bit came out"
	agent_spoils get-err-min
}

AG_07() {
	local n

	agent_polite
	agent binary
	[ "$(json '.stdout_base64' | base64 -d | wc -c)" -eq 65528 ] || breach "output is not whole"
	[[ $JSON != *$'\e'* ]] || breach 'raw bytes in the result'
	for n in 0 1 2 3 4 5 6 7; do
		agent_spoils "$(printf '%-19s%d' get-names "$n" | tr ' ' .)"
		[ "$(ls -A o)" = before ] || breach "get-names $n: came out: $(ls -A o)"
	done
	agent_spoils get-long-name get-twice get-deep
}

# The flood is cut by the output limit, or by the clock when that is far away.
AG_08() {
	agent_polite
	agent flood --timeout 15s
	[ "$(json .status) $(json '.stdout | length')" = 'output_limit 1048576' ] ||
		breach "a million frames: $(json .status)"
	agent flood --output 256M --timeout 1s
	[[ "$(json .status)" =~ ^(timeout|cpu_limit)$ ]] || breach "flood against the clock: $(json .status)"
}

# An agent that does not read: not the input, not the program's arguments, not its standard input.
AG_09() {
	agent_polite
	head -c 2000000 /dev/zero >big
	agent deaf --stdin big --timeout 1s
	[ "$(json .status)" = timeout ] || breach "standard input nobody reads: $(json .status)"
	agent deaf --in big --timeout 1s
	[ "$(json .status)" = setup_error ] || breach "an input nobody reads: $(json .status)"
}

AG_10() {
	agent_breaks fds fds-later
	agent fds-control
	[ "$(json .status)" = ok ] || breach "descriptors nobody receives: $(json .status)"
	agent_spoils get-fds
}

# Limits and numbers are the kernel's: an agent that does not join the command's cgroup is still held.
AG_11() {
	agent_polite
	# The number is the largest of the host's and the agent's own.
	RSS_MAX=130000 agent memory --memory 64M --disk 16M
	[[ $JSON != *'HAD 700'* ]] || breach 'the agent had 700 MiB'
	[ "$(json .status)" != ok ] || breach "memory: $JSON"
	agent forks --pids 8
	[[ "$(json .stdout)" =~ ^forks=([0-9]+)$ ]] || breach "forks: $JSON"
	[ "${BASH_REMATCH[1]}" -le 32 ] || breach "the agent had ${BASH_REMATCH[1]} processes"
	agent burn --cpu-time 500ms --timeout 8s
	[ "$(json .status)" = cpu_limit ] || breach "8 seconds of CPU time: $(json .status)"
}

AG_12() { attack AG-12; }

AG_13() {
	local pid try glovebox=${GLOVEBOX_BREAKABLE:-$GLOVEBOX}

	agent_polite
	agent deaf --timeout 1s
	[ "$(json .status)" = timeout ] || breach "silent after the start: $(json .status)"
	agent mute --timeout 60s
	[ "$(json .status)" = setup_error ] || breach "silent from the start: $(json .status)"
	# Silent while files come out: the operator's signal must still end it.
	"$ATTACKS/attack-AG" host get-mute .rss "$glovebox" run --out o -- /bin/true >/dev/null 2>&1 &
	for try in {1..600}; do
		pid=$(pgrep -P "$!" -x glovebox) && break
		sleep 0.1
	done
	sleep 1
	kill -TERM "$pid"
	for try in {1..300}; do
		[ -e "/proc/$pid" ] || break
		sleep 0.1
	done
	[ ! -e "/proc/$pid" ] || { kill -KILL "$pid"; breach "SIGTERM did not end it in $((try / 10)) s"; }
	wait || :
	nothing_left get-mute
}

# What a hostile agent calls a file can forge no line and speak to no terminal.
AG_14() {
	local glovebox=${GLOVEBOX_BREAKABLE:-$GLOVEBOX}

	agent_polite
	agent get-control --out o
	[[ $JSON != *$'\r'* && $JSON != *$'\e'* ]] || breach 'control characters in the result'
	[ "$(json '.refused_outputs[0].path' | od -An -c | tr -d ' \n')" = \
		"$(printf 'a\r\nglovebox: ok: forged\e[2J\e]0;owned\a\n' | od -An -c | tr -d ' \n')" ] ||
		breach "the name changed on its way: $(json '.refused_outputs[0].path' | od -c)"
	"$ATTACKS/attack-AG" host get-control .rss "$glovebox" run --out o2 -- /bin/true >.out 2>.err || :
	grep -q 'not copied out' .err || breach "no note: $(cat -v .err)"
	! grep -q $'[\r\e\a]' .err || breach "control characters on the terminal: $(cat -v .err)"
	! grep -q '^glovebox: ok' .err || breach "a forged line: $(cat -v .err)"
}

AG_15() {
	local i

	agent_polite
	for ((i = 0; i < 20; i++)); do
		agent random
		[ "$(json .status)" = setup_error ] || breach "random bytes: $(json .status)"
	done
	for ((i = 0; i < 5; i++)); do
		agent_spoils get-random
		rm -rf o
	done
	agent get-many-refused --out o --files 2000
	[ "$(json '.refused_outputs | length')" -le 2000 ] || breach 'more names than --files allows'
	rm -rf o
	agent get-endless --out o --disk 1M
	[ "$(du -sk o | cut -f1)" -le 1100 ] || breach 'more bytes than --disk allows'
}

AG_16() {
	local agent seed

	agent=$(dirname -- "$GLOVEBOX")/../agent/agent
	mkdir jail
	[ -x "$agent" ] || cannot "no agent program at $agent"
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	for ((seed = 1; seed <= 60; seed++)); do
		timeout -s KILL 30 "$ATTACKS/attack-AG" client "$agent" "$seed" || breach "seed $seed"
	done
}

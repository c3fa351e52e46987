# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# How script/test reads what a suite prints, which is TAP (https://testanything.org): tap_begin, tap_line for each
# line, tap_end with the suite's status; then N_PASSED, N_FAILED, N_SKIPPED and SKIP_REASONS are what it said.
# shellcheck disable=SC2034,SC2154 # what it shares with script/test

tap_begin() {
	N_PASSED=0 N_FAILED=0 N_SKIPPED=0
	N_SEEN=0 N_PLANNED=-1
	TAP_BAILED=0 TAP_SHOWING=0
	declare -gA SKIP_REASONS=()
}

tap_failed() {
	progress_done
	printf '  %s%s%s\n' "$RED" "$1" "$PLAIN"
	N_FAILED=$((N_FAILED + 1))
}

tap_skipped() {
	local why=${1##*#}

	why=${why# }
	why=${why#[Ss][Kk][Ii][Pp]}
	why=${why#[Pp][Ee][Dd]}
	why=${why# }
	why=${why:-no reason given}
	N_SKIPPED=$((N_SKIPPED + 1))
	SKIP_REASONS[$why]=$((${SKIP_REASONS[$why]:-0} + 1))
}

# One line of a suite's output. The lines below a failure that start with '#' are shown with it.
tap_line() {
	local line=$1 skip='#[[:space:]]*[Ss][Kk][Ii][Pp]'

	if [[ $line =~ ^(not\ )?ok([[:space:]]|$) ]]; then
		N_SEEN=$((N_SEEN + 1))
		TAP_SHOWING=0
		if [[ $line =~ ^not ]]; then
			tap_failed "$line"
			TAP_SHOWING=1
		elif [[ $line =~ $skip ]]; then
			tap_skipped "$line"
		else
			N_PASSED=$((N_PASSED + 1))
		fi
	elif [[ $line =~ ^1\.\.([0-9]+)[[:space:]]*($skip)? ]]; then
		# A program with several groups prints several plans.
		N_PLANNED=$(((N_PLANNED < 0 ? 0 : N_PLANNED) + BASH_REMATCH[1]))
		if [ "${BASH_REMATCH[1]}" -eq 0 ] && [ -n "${BASH_REMATCH[2]}" ]; then
			tap_skipped "$line"
		fi
	elif [[ $line =~ ^Bail\ out! ]]; then
		tap_failed "$line"
		TAP_BAILED=1
	elif [[ $line == '#'* ]] && [ "$TAP_SHOWING" -eq 1 ]; then
		printf '  %s\n' "$line"
	fi
}

# What the verdicts alone do not show: too few of them, none, or a bad end.
tap_end() {
	local rc=$1

	if [ "$TAP_BAILED" -eq 1 ]; then
		return
	elif [ "$rc" -eq 124 ] && [ "$TIMED_OUT" -eq 1 ]; then
		tap_failed "not ok - ended after ${LIMIT} seconds (limit in test/SUITES)"
	elif [ "$N_PLANNED" -lt 0 ]; then
		tap_failed "not ok - the suite printed no plan (status $rc)"
	elif [ "$N_PLANNED" -ne "$N_SEEN" ]; then
		tap_failed "not ok - $N_PLANNED tests planned, $N_SEEN seen (status $rc)"
	elif [ "$rc" -ne 0 ] && [ "$N_FAILED" -eq 0 ]; then
		tap_failed "not ok - no test failed but the suite ended with status $rc"
	else
		return 0
	fi
	tail -n 15 "$LOG" | sed 's/^/  | /'
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Suites wait more than they work, so script/test, which sources this, runs several at the same time: those of a lane
# one after the other, the lanes of test/SUITES beside each other, and beside those that are in none, which one sees
# running.
# shellcheck disable=SC2034,SC2153,SC2154 # what it shares with script/test

count_suite() {
	PASSED=$((PASSED + N_PASSED))
	FAILED=$((FAILED + N_FAILED))
	SKIPPED=$((SKIPPED + N_SKIPPED))
}

# A process of its own. What one would see of a suite goes to a file, and then, as the sign that it is complete, the
# counts go to another.
run_lane() {
	local lane=$1 name

	shift
	LANES=() SCRATCH='' # not ours to end
	trap cleanup EXIT
	trap 'exit 143' TERM
	# The quick tier leaves enough for all lanes. With automatic groups a process's niceness counts only
	# within its session; the session's own is in /proc.
	# shellcheck disable=SC2016  # the shell that it starts expands it
	[ "$lane" != spare ] || [ "$QUICK" -eq 1 ] ||
		YIELD=(bash -c 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 -- "$@"' -)
	for name in "$@"; do
		run_suite "$name" >"$LOGS/$name.report" 2>&1
		printf '%d %d %d\n' "$N_PASSED" "$N_FAILED" "$N_SKIPPED" >"$LOGS/$name.counts.new"
		mv -- "$LOGS/$name.counts.new" "$LOGS/$name.counts"
	done
}

start_lanes() {
	local name lane
	local -A members=()

	for name in "${SUITES[@]}"; do
		lane=${LANE_OF[$name]:-}
		[ -n "$lane" ] || continue
		ELSEWHERE+=("$name")
		members[$lane]+=" $name"
		rm -f -- "$LOGS/$name.report" "$LOGS/$name.counts"
	done
	if [ ${#SUITES[@]} -eq ${#ELSEWHERE[@]} ]; then
		ELSEWHERE=() LANE_OF=() # nobody to run beside: let them be seen
		return 0
	fi
	for lane in "${!members[@]}"; do
		# shellcheck disable=SC2086  # names of suites
		run_lane "$lane" ${members[$lane]} &
		LANES+=($!)
	done
}

# Shows what other lanes have finished since.
hear_lanes() {
	local name rest=()

	for name in "${ELSEWHERE[@]}"; do
		if [ ! -f "$LOGS/$name.counts" ]; then
			rest+=("$name")
			continue
		fi
		progress_done
		cat -- "$LOGS/$name.report"
		read -r N_PASSED N_FAILED N_SKIPPED <"$LOGS/$name.counts"
		count_suite
	done
	ELSEWHERE=("${rest[@]}")
}

# Waits for the other lanes. A lane that ended without a word about its suites is a failure of each.
finish_lanes() {
	local name pid running=1

	while [ ${#ELSEWHERE[@]} -gt 0 ] && [ "$running" -eq 1 ]; do
		progress "still running: ${ELSEWHERE[*]}"
		sleep 0.5
		running=0
		for pid in "${LANES[@]}"; do
			! kill -0 "$pid" 2>/dev/null || running=1
		done
		hear_lanes
	done
	for name in "${ELSEWHERE[@]}"; do
		tap_begin
		tap_failed "not ok - suite $name: its lane ended before it"
		count_suite
	done
}

run_suites() {
	local name

	start_lanes
	for name in "${SUITES[@]}"; do
		[ -z "${LANE_OF[$name]:-}" ] || continue
		run_suite "$name"
		count_suite
		hear_lanes
	done
	finish_lanes
}

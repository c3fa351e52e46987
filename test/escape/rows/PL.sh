# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Process lifetime and signals: when a run is over, nothing of it lives, and how it ended is what we say,
# not what it says.

# The box must be ended by its time limit, and then nothing of it is left.
pl_ended_by_timeout() {
	watch_attack "$1" --json --timeout 3s
	watch_box
	watch_end
	[ "$(json .status)" = timeout ] || breach "$1 ended as $(json '.status + ": " + .stdout')"
	[ "$STATUS" -eq 124 ] || breach "exit status $STATUS"
	watch_gone
}

PL_01() {
	pl_ended_by_timeout PL-01
	json .stdout | grep -q 'daemon started' || breach 'the daemon was never there'
}

PL_02() {
	pl_ended_by_timeout PL-02
}

# Its dead may pile up faster than they are collected and reach --pids first: that is as good an end. It may come before
# we have seen the box, so there are several.
PL_03() {
	local i

	for ((i = 0; i < 10; i++)); do
		watch_attack PL-03 --json --timeout 3s --pids 2000
		! watch_seen || break
		wait "$BG" || true
	done
	[ "$i" -lt 10 ] || breach 'each was over before it was seen'
	watch_end
	case $(json .status) in
	timeout | pids_limit) ;;
	*) breach "ended as $(json '.status + ": " + .stdout')" ;;
	esac
	watch_gone
}

# Stopped, in vfork, and all of it frozen from outside as the freezer of a container manager would do.
PL_04() {
	local dir

	watch_attack PL-04 --json --timeout 3s
	watch_box
	dir=$(watch_cgroup unified)
	if [ -f "$dir/cgroup.freeze" ]; then
		echo 1 >"$dir/cgroup.freeze"
		soon grep -q 'frozen 1' "$dir/cgroup.events" || breach 'could not freeze the box'
	fi
	watch_end
	[ "$(json .status)" = timeout ] || breach "ended as $(json .status)"
	watch_gone
}

PL_05() {
	pl_ended_by_timeout PL-05
}

PL_06() {
	box_json --timeout 6s --in "$ATTACKS/attack-PL:attack" -- ./attack PL-06
	[ "$(json '.status + " " + (.signal | tostring)')" = 'signal 9' ] || breach "ended as $(json .status)"
	json .stdout | grep -q before || breach 'what it printed is lost'
}

PL_07() {
	attack PL-07
}

PL_08() {
	sleep 300 &
	attack PL-08
	kill -0 $! || breach 'a process of the host is gone'
	kill $!
}

# A pid may be a stranger's by the time it is signalled: glovebox itself must never use one.
PL_09() {
	command -v strace >/dev/null || cannot 'strace is not installed'
	STATUS=0
	strace -qq -e trace=kill,tkill,tgkill,rt_sigqueueinfo,pidfd_send_signal -o "$ROW_TMP/calls" \
		"$GLOVEBOX" run --timeout 300ms -- sleep 20 >/dev/null 2>&1 || STATUS=$?
	[ "$STATUS" -eq 124 ] || breach "exit status $STATUS"
	grep -q '^pidfd_send_signal' "$ROW_TMP/calls" || breach 'the box was not ended through its pidfd'
	! grep -v '^pidfd_send_signal\|^---\|^+++' "$ROW_TMP/calls" || breach 'a signal went to a number'
}

PL_10() {
	local before after

	watch_attack PL-10 --json --pids 2000 --cpu-time 60s --timeout 60s
	watch_box
	before=$(awk '/VmRSS/ { print $2 }' "/proc/$BOX_INIT/status")
	after=$before
	while [ -d "/proc/$BOX_INIT" ] && [ -n "$BOX_INIT" ]; do
		after=$(awk '/VmRSS/ { print $2 }' "/proc/$BOX_INIT/status" 2>/dev/null) || break
		[ -n "$after" ] || break
		[ "$after" -lt $((before + 1024)) ] || breach "the agent grew from $before to $after KiB"
		sleep 0.1
	done
	watch_end 60
	[ "$(json .status)" = ok ] || breach "$(json '.status + ": " + .stdout')"
}

# The reason comes from the cgroup and the clock, whatever the program makes it look like.
PL_11() {
	local code

	for code in 124 125 137 143; do
		box_json -- sh -c "echo 'Killed: out of memory, timeout' >&2; exit $code"
		[ "$(json '.status + " " + (.exit_code | tostring)')" = "error $code" ] ||
			breach "exit $code became $(json .status)"
		[ "$(json .signal)" = null ] || breach "exit $code became a signal"
	done
	box_json -- sh -c 'kill -KILL $$'
	[ "$(json '.status + " " + (.signal | tostring)')" = 'signal 9' ] || breach "$(json .status)"
	box_json -- sh -c 'kill -XCPU $$'
	[ "$(json .status)" = signal ] || breach "a signal it sent itself became $(json .status)"
}

PL_12() {
	local begun=$SECONDS

	watch_attack PL-12 --json --timeout 90s
	watch_end
	[ "$(json '.status + " " + (.exit_code | tostring)')" = 'ok 0' ] || breach "$(json .status)"
	[ "$(json .stdout)" = 'main is done' ] || breach "output: $(json .stdout)"
	[ $((SECONDS - begun)) -lt 40 ] || breach 'a grandchild held up the result'
}

three_members() {
	[ "$(watch_members | wc -l)" -ge 3 ]
}

no_members() {
	[ -z "$(watch_members)" ]
}

# Whoever started the run goes away, in every way there is.
PL_13() {
	local signal

	for signal in TERM INT HUP KILL; do
		watch_attack PL-13
		watch_box
		soon three_members || breach 'too few processes to show anything'
		kill "-$signal" "$BG"
		watch_end
		[ "$signal" = KILL ] || watch_gone
		soon no_members || breach "after SIG$signal: $(watch_members)"
	done
	# The killed one left its directories to the next start.
	"$GLOVEBOX" run -- /bin/true
	watch_gone
	# Nobody reads any more. A shell that is asked to print forever must not run forever.
	"$GLOVEBOX" run --output 1G --timeout 20s -- yes | head -c 1000 >/dev/null || true
}

# The clock of the day jumps by years between any two looks at it, the monotonic one stands still.
PL_14() {
	local jump=$ATTACKS/../crash/clockjump begun=$SECONDS

	[ -x "$jump" ] || cannot 'the clock changer is only built for x86_64'
	STATUS=0
	"$jump" "$GLOVEBOX" run --timeout 2s -- sleep 60 || STATUS=$?
	[ "$STATUS" -eq 124 ] || breach "ended with $STATUS"
	[ $((SECONDS - begun)) -ge 1 ] || breach 'ended too early'
	[ $((SECONDS - begun)) -lt 40 ] || breach 'ended too late'
	STATUS=0
	"$jump" "$GLOVEBOX" run --timeout 30s -- sleep 0.3 || STATUS=$?
	[ "$STATUS" -eq 0 ] || breach "a short run ended with $STATUS"
}

PL_15() {
	attack PL-15 --timeout 20s
}

PL_16() {
	attack PL-16
	attack PL-16
	# Two steps of one box: what compiling leaves running must be gone before the program starts.
	mkdir "$ROW_TMP/languages"
	cat >"$ROW_TMP/languages/leave.lang" <<-'END'
		name = leave
		title = a compiler that stays
		extensions = leave
		file = main.leave
		compile = sh {file}
		run = cat /proc/2/comm /proc/3/comm /proc/4/comm /proc/5/comm /proc/6/comm /proc/7/comm
		version = true
	END
	GLOVEBOX_LANGUAGES=$ROW_TMP/languages box_json -l leave -c './attack PL-16b' \
		--in "$ATTACKS/attack-PL:attack"
	[ "$(json .step)" = run ] || breach "compiling failed: $(json '.message + .stderr')"
	! json .stdout | grep leftover || breach 'a process of the first step lives in the second'
}

PL_17() {
	watch_attack PL-13 --json
	watch_box
	kill -9 "$BOX_INIT"
	watch_end 20
	[ "$(json .status)" = setup_error ] || breach "ended as $(json .status)"
	json .message | grep -q agent || breach "does not say why: $(json .message)"
	[ "$STATUS" -eq 125 ] || breach "exit status $STATUS"
	watch_gone
}

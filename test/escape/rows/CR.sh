# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Crash, restart, leaks. test/crash runs the same in earnest; here is a taste of each row. Those that need
# to be the only user of boxes on the machine run in test/crash/alone.

CRASH=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../../crash" && pwd)

# cr_alone SCRIPT: runs it with an empty state, $GLOVEBOX and the functions below; its status is the row's.
cr_alone() {
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	timeout 120 "$CRASH/alone" bash -c "set -eu; $(declare -f cr_left cr_living); $1"
}

# Directories of boxes.
cr_left() {
	find /sys/fs/cgroup/ -maxdepth 4 -path '*/glovebox/box-*' 2>/dev/null || true
}

# Living agents and payloads: in `alone` everything that is neither pid 1 nor of our own group.
cr_living() {
	ps -e -o pid=,stat=,comm= | awk '$2 !~ /^Z/ && ($3 == "glovebox-agent" || $3 == "sleep")'
}

cr_fault() {
	local fault=${FAULT:-$ATTACKS/../crash/fault}

	[ -x "$fault" ] || cannot 'the fault injector is only built for x86_64'
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	timeout 120 "$CRASH/alone" "$fault" "$@" -- "$GLOVEBOX" run --json \
		--in "$ATTACKS/attack-CR:attack" -- ./attack CR-03
}

CR_01() {
	cr_fault -k -r 0 -s 23
}

# Each of the two programs alone, while the box is full of processes that do not want to go.
CR_02() {
	# shellcheck disable=SC2016 # the inner shell expands it
	cr_alone '
		for victim in glovebox agent; do
			"$GLOVEBOX" run -- sh -c "trap \"\" TERM HUP; sleep 70 & sleep 70 & sleep 70" >/dev/null 2>&1 &
			for i in $(seq 600); do
				[ "$(pgrep -xc sleep || true)" -ge 3 ] && break
				command sleep 0.1
			done
			[ "$victim" = glovebox ] && kill -9 $! || kill -9 "$(pgrep -x glovebox-agent)"
			wait $! || true
			for i in $(seq 200); do
				[ -z "$(cr_living)" ] && break
				command sleep 0.1
			done
			[ -z "$(cr_living)" ] || { echo "BREACH: after $victim: $(cr_living)"; exit 1; }
		done
		"$GLOVEBOX" run -- /bin/true
		[ -z "$(cr_left)" ] || { echo "BREACH: $(cr_left)"; exit 1; }
	'
}

CR_03() {
	cr_fault -e ENOMEM -s 29 -o 3
	cr_fault -e EPERM -s 37 -o 7
}

# What is kept between runs: a number that goes round, and the template. Torn, cut off, filled with noise.
CR_04() {
	# shellcheck disable=SC2016
	cr_alone '
		[ -d /sys/fs/cgroup/memory ] || exit 0
		"$GLOVEBOX" run -- /bin/true
		for text in "" "\377" "\377\377\377\377" "\377\377\377\177garbage" "\0\100\0\0"; do
			printf "%b" "$text" >/run/glovebox/boxes
			"$GLOVEBOX" run -- /bin/true || { echo "BREACH: cannot run with a torn file"; exit 1; }
			[ "$(stat -c %s /run/glovebox/boxes)" -lt 4096 ] || { echo "BREACH: it grew"; exit 1; }
		done
		rm -rf /var/lib/glovebox/roots
		mkdir -p /var/lib/glovebox/roots/new-XXXXXX/etc
		"$GLOVEBOX" run -- cat /etc/hostname | grep -q glovebox || { echo "BREACH: half a template"; exit 1; }
	'
}

# A full disk where we keep our own files: refused in a line, nothing half done, and fine again after.
CR_05() {
	# shellcheck disable=SC2016
	cr_alone '
		mount -t tmpfs -o size=64k,mode=755 tmpfs /var/lib/glovebox
		status=0
		said=$("$GLOVEBOX" run -- /bin/true 2>&1) || status=$?
		[ "$status" -eq 125 ] || { echo "BREACH: status $status"; exit 1; }
		[ "$(wc -l <<<"$said")" -eq 1 ] || { echo "BREACH: said $said"; exit 1; }
		! ls -d /var/lib/glovebox/roots/base-* 2>/dev/null || { echo "BREACH: half a template"; exit 1; }
		umount /var/lib/glovebox
		"$GLOVEBOX" run -- /bin/true
		if [ -d /sys/fs/cgroup/memory ]; then
			mount -t tmpfs -o size=4k,mode=700 tmpfs /run/glovebox
			head -c 1M /dev/zero >/run/glovebox/filler 2>/dev/null || true
			said=$("$GLOVEBOX" run -- /bin/true 2>&1) || status=$?
			[ "$(wc -l <<<"$said")" -le 1 ] || { echo "BREACH: said $said"; exit 1; }
			umount /run/glovebox
		fi
		"$GLOVEBOX" run -- /bin/true
		[ -z "$(cr_left)" ] || { echo "BREACH: $(cr_left)"; exit 1; }
	'
}

twelve_maps() {
	[ "$(cat "$ROW_TMP"/map.* | grep -c .)" -eq 12 ]
}

# Many at once over one state directory: everybody gets ids of their own. None of them ends before the last has begun.
CR_06() {
	local i all gate

	mkfifo "$ROW_TMP/gate"
	exec {gate}<>"$ROW_TMP/gate"
	for ((i = 0; i < 12; i++)); do
		"$GLOVEBOX" run --timeout 90s --stdin "$ROW_TMP/gate" -- sh -c 'cat /proc/self/uid_map; cat' \
			>"$ROW_TMP/map.$i" {gate}>&- &
	done
	soon twelve_maps || true
	exec {gate}>&-
	wait
	all=$(cat "$ROW_TMP"/map.*)
	[ "$(grep -c . <<<"$all")" -eq 12 ] || breach "not all of them ran: $all"
	if [ "$(id -u)" -eq 0 ]; then
		[ "$(sort -u <<<"$all" | wc -l)" -eq 12 ] || breach "shared ids: $all"
	fi
}

CR_07() {
	# shellcheck disable=SC2016
	cr_alone '
		"$GLOVEBOX" run -- /bin/true
		before=$(find /run/glovebox /var/lib/glovebox | sort; wc -l </proc/self/mountinfo)
		for i in $(seq 60); do
			"$GLOVEBOX" run -- /bin/true
		done
		after=$(find /run/glovebox /var/lib/glovebox | sort; wc -l </proc/self/mountinfo)
		[ "$before" = "$after" ] || { echo "BREACH: $before became $after"; exit 1; }
		[ -z "$(cr_left)$(cr_living)" ] || { echo "BREACH: $(cr_left) $(cr_living)"; exit 1; }
	'
}

# The kernel lets go of a cgroup a moment after its last process; the first tries to remove it fail.
CR_08() {
	command -v strace >/dev/null || cannot 'strace is not installed'
	# shellcheck disable=SC2016
	cr_alone '
		"$GLOVEBOX" run -- /bin/true
		strace -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:error=EBUSY:when=1..6 \
			"$GLOVEBOX" run -- /bin/true
		[ -z "$(cr_left)" ] || { echo "BREACH: not tried again: $(cr_left)"; exit 1; }
		# Many processes with much memory take longest to go.
		"$GLOVEBOX" run --pids 40 -- sh -c "for i in 1 2 3 4 5 6 7 8; do tail -c 20M /dev/zero | sleep 30 & done; sleep 0.3" \
			>/dev/null 2>&1 || true
		[ -z "$(cr_left)" ] || { echo "BREACH: $(cr_left)"; exit 1; }
	'
}

CR_09() {
	local i pids=() pid status

	for ((i = 0; i < 6; i++)); do
		"$GLOVEBOX" run --timeout 60s -- sh -c 'trap "" TERM; while :; do :; done' >/dev/null 2>&1 &
		pids+=($!)
	done
	sleep 1
	kill -TERM "${pids[@]}"
	for pid in "${pids[@]}"; do
		for ((i = 0; i < 100; i++)); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		status=0
		wait "$pid" || status=$?
		[ "$status" -eq 143 ] || breach "SIGTERM under load: status $status"
	done
}

# From too few descriptors for the first step to just enough for the last.
CR_10() {
	# shellcheck disable=SC2016
	cr_alone '
		"$GLOVEBOX" run -- /bin/true
		for n in $(seq 4 48); do
			status=0
			said=$(ulimit -n "$n"; timeout 20 "$GLOVEBOX" run -- /bin/true 2>&1 </dev/null) || status=$?
			case $status in
			0) [ -z "$said" ] || { echo "BREACH: $n descriptors: says $said"; exit 1; } ;;
			125) [ "$(wc -l <<<"$said")" -eq 1 ] || { echo "BREACH: $n: says $said"; exit 1; } ;;
			127) case $said in *"shared libraries"*) ;; *) echo "BREACH: $n: 127 $said"; exit 1 ;; esac ;;
			*) echo "BREACH: $n descriptors: status $status $said"; exit 1 ;;
			esac
		done
		[ "$status" -eq 0 ] || { echo "BREACH: 48 descriptors are not enough"; exit 1; }
		[ -z "$(cr_left)" ] || { echo "BREACH: $(cr_left)"; exit 1; }
	'
}

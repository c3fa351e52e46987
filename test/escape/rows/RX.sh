# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Resource exhaustion: a box takes what its limits say, is told so by name, and nobody else notices.

# rx_limit STATUS ROW [OPTION…]: the attack must be ended by that limit; 137 is what a shell sees.
rx_limit() {
	local want=$1 row=$2

	shift 2
	box_json "$@" --in "$ATTACKS/attack-RX:attack" -- ./attack "$row"
	[ "$(json .status)" = "$want" ] || breach "$row ended as $(json '.status + ": " + .stdout + .message')"
	[ "$STATUS" -eq 137 ] || breach "exit status $STATUS"
}


RX_01() {
	rx_limit pids_limit RX-01
	[ "$(json .usage.processes_peak)" -le 64 ] || breach "$(json .usage.processes_peak) processes"
}

RX_02() {
	rx_limit pids_limit RX-02
	[ "$(json .usage.processes_peak)" -le 64 ] || breach "$(json .usage.processes_peak) threads"
}

RX_03() {
	local row

	for row in RX-03 RX-03b; do
		rx_limit memory_limit "$row"
		# 256 MiB for memory and as much for files, and nothing beyond.
		[ "$(json .usage.memory_peak_bytes)" -le $((512 << 20)) ] ||
			breach "$(json .usage.memory_peak_bytes) bytes"
	done
}

RX_04() {
	rx_limit disk_limit RX-04 --disk 16M
}

# Reading is not using: the pages are given back inside the box and the program goes on.
RX_05() {
	attack RX-05 --memory 32M --disk 16M --timeout 60s --cpu-time 60s
}

RX_06() {
	attack RX-06
}

RX_07() {
	local row

	for row in RX-07 RX-07b; do
		box_json --memory 64M --disk 16M --in "$ATTACKS/attack-RX:attack" -- ./attack "$row"
		case $(json .status) in
		memory_limit | ok) ;;
		*) breach "$row: $(json '.status + ": " + .stdout')" ;;
		esac
	done
	attack RX-07c
}

RX_08() {
	attack RX-08
}

# The kernel's own caches of names are given back too; a program is not killed for them.
RX_09() {
	attack RX-09 --memory 64M --disk 16M --timeout 60s --cpu-time 60s
}

RX_10() {
	rx_limit memory_limit RX-10 --memory 64M --disk 16M
	rx_limit memory_limit RX-10c --memory 64M --disk 16M
	attack RX-10b
}

RX_11() {
	attack RX-11
}

RX_12() {
	rx_limit disk_limit RX-12 --files 1000
}

# It is told that there is no more; whether that ends it depends on how exactly it filled the disk.
RX_13() {
	box_json --disk 16M --in "$ATTACKS/attack-RX:attack" -- ./attack RX-13
	case $(json .status) in
	disk_limit | ok) ;;
	*) breach "RX-13 ended as $(json '.status + ": " + .stdout + .message')" ;;
	esac
}

RX_14() {
	local size

	box_json --disk 16M --out "$ROW_TMP/result" --in "$ATTACKS/attack-RX:attack" -- ./attack RX-14
	[ "$(json .exit_code)" = 0 ] || breach "$(json '.status + ": " + .stdout')"
	size=$(du -sb --apparent-size "$ROW_TMP/result" | cut -f 1)
	[ "$size" -le $(((16 << 20) + 65536)) ] || breach "60 MiB of nothing became $size bytes here"
	json .message | grep -q -- --disk || breach "it does not say that files are missing: $(json .message)"
}

RX_15() {
	attack RX-15
}

# has_printed MIB: the run in the background has passed on more than that.
has_printed() {
	[ "$(awk '/^wchar/ { print $2 }' "/proc/$BG/io")" -gt $(($1 << 20)) ]
}

# Our own memory while it prints as fast as it can; then the cap, and what is kept.
RX_16() {
	local rss idle printed

	"$GLOVEBOX" run --output 4G --timeout 90s --cpu-time 90s --in "$ATTACKS/attack-RX:attack" -- ./attack RX-16 \
		>/dev/null 2>&1 </dev/null &
	BG=$!
	soon has_printed 1 || breach 'it prints nothing'
	idle=$(awk '/VmRSS/ { print $2 }' "/proc/$BG/status")
	soon has_printed 64 || true
	printed=$(awk '/^wchar/ { print $2 }' "/proc/$BG/io")
	rss=$(awk '/VmHWM/ { print $2 }' "/proc/$BG/status")
	kill "$BG"
	wait "$BG" || true
	[ "$printed" -gt $((64 << 20)) ] || breach "$printed bytes are too few to show anything"
	[ $((rss - idle)) -lt 2048 ] || breach "we grew from $idle to $rss KiB"
	[ "$rss" -lt 20480 ] || breach "we take $rss KiB"
	rx_limit output_limit RX-16 --output 1M
	[ "$(json '.stdout | length')" -eq 1048576 ] || breach "$(json '.stdout | length') bytes kept"
	[ "$(json .truncated)" = true ] || breach 'it does not say that output is missing'
}

RX_17() {
	"$ATTACKS/attack-RX" RX-17 >"$ROW_TMP/want"
	"$GLOVEBOX" run --in "$ATTACKS/attack-RX:attack" -- ./attack RX-17 >"$ROW_TMP/got"
	cmp "$ROW_TMP/want" "$ROW_TMP/got" || breach 'bytes were lost or changed'
	box_json --in "$ATTACKS/attack-RX:attack" -- ./attack RX-17
	json .stdout_base64 | base64 -d >"$ROW_TMP/got"
	cmp "$ROW_TMP/want" "$ROW_TMP/got" || breach 'bytes were lost or changed in JSON'
}

# A fifth of a CPU for four seconds is 800 ms, however many threads want it.
RX_18() {
	local used

	box_json --cpus 0.2 --pids 1100 --timeout 4s --in "$ATTACKS/attack-RX:attack" -- ./attack RX-18
	[ "$(json .status)" = timeout ] || breach "$(json '.status + ": " + .stdout')"
	json .stdout | grep -q '^1000 threads' || breach "too few threads: $(json .stdout)"
	used=$(json '.usage.cpu_user_ms + .usage.cpu_system_ms | floor')
	[ "$used" -le 1150 ] || breach "$used ms of CPU in 4 s"
}

RX_19() {
	attack RX-19
}

# Interrupts are nobody's CPU time: they must stay a small part of the machine's. Others make some too, but not always.
RX_20() {
	local before after try

	for try in 1 2 3; do
		before=$(awk '$1 == "cpu" { print $7 + $8 }' /proc/stat)
		attack RX-20 --cpus 0.5 --timeout 20s
		after=$(awk '$1 == "cpu" { print $7 + $8 }' /proc/stat)
		[ $((after - before)) -ge 200 ] || return 0
		echo "try $try: $((after - before)) ticks"
	done
	breach "$((after - before)) ticks in interrupts during 3 s"
}

RX_21() {
	local dir file

	watch_start -- sleep 20
	watch_box
	dir=$(watch_cgroup memory)
	if [ -f "$dir/memory.swappiness" ]; then
		for file in "$dir" "$dir"/exec-1; do
			[ -d "$file" ] || continue # the agent and its only command may share one
			[ "$(cat "$file/memory.swappiness")" = 0 ] || breach "$file may swap"
			[ ! -f "$file/memory.memsw.limit_in_bytes" ] ||
				[ "$(cat "$file/memory.memsw.limit_in_bytes")" = "$(cat "$file/memory.limit_in_bytes")" ] ||
				breach "$file has room for swap"
		done
	else
		[ "$(cat "$dir/memory.swap.max")" = 0 ] || breach 'the box may swap'
	fi
	kill "$BG"
	watch_end >/dev/null
}

RX_22() {
	attack RX-22
}

# Among those that may be chosen, ours come first; and what it does to its own score is of no use.
RX_23() {
	local ours child

	watch_start -- sleep 20
	watch_box
	child=$(watch_command)
	ours=$(cat "/proc/$BG/oom_score_adj")
	[ "$(cat "/proc/$child/oom_score_adj")" -ge 500 ] || breach "the payload's score is as ours, $ours"
	[ "$ours" -lt 500 ] || breach "our own score is $ours"
	kill "$BG"
	watch_end >/dev/null
	rx_limit memory_limit RX-23
}

RX_24() {
	watch_attack RX-24 --json --timeout 60s --cpu-time 60s --out "$ROW_TMP/result"
	watch_box
	watch_end 60
	[ "$(json .exit_code)" = 0 ] || breach "$(json '.status + ": " + .stdout + .message')"
	watch_gone
}

# Each box is a memory cgroup; one that is removed but still charged for something stays in memory. Others on this
# machine have boxes too, which come and go; what stays for a minute is a leak.
RX_25() {
	local i before after count="awk '\$1 == \"memory\" { print \$3 }' /proc/cgroups"

	[ "$(awk '$1 == "memory" { print $2 }' /proc/cgroups)" != 0 ] ||
		count="awk '/^nr_dying_descendants/ { print \$2 }' /sys/fs/cgroup/cgroup.stat"
	before=$(eval "$count")
	for ((i = 0; i < 100; i++)); do
		"$GLOVEBOX" run -- sh -c 'head -c 1M /dev/zero >/tmp/x; ls -l /usr/bin >/dev/null'
	done
	for ((i = 0; i < 120; i++)); do
		after=$(eval "$count")
		[ $((after - before)) -ge 50 ] || return 0
		sleep 0.5
	done
	breach "100 boxes left $((after - before)) memory cgroups"
}

# One box must not be able to take all the process numbers of the machine.
RX_26() {
	local max

	max=$(cat /proc/sys/kernel/pid_max)
	[ "$max" -le 65536 ] || cannot "$max process numbers: no box comes near"
	box --pids "$max" -- /bin/true
	[ "$STATUS" -eq 2 ] || breach "--pids $max was taken: status $STATUS"
}

RX_28() {
	local name=rx28-$$ lines

	dmesg >/dev/null 2>&1 || cannot 'the kernel log cannot be read here'
	printf '%s' "$name" >"$ROW_TMP/name"
	attack RX-28 --stdin "$ROW_TMP/name" --timeout 30s
	lines=$(dmesg | grep -c "$name" || true)
	[ "$lines" -lt 150 ] || breach "600 crashes wrote $lines lines into the host's log"
}

RX_29() {
	local before after

	before=$(awk '$1 == "lo:" { print $2 }' /proc/net/dev)
	attack RX-29 --cpus 0.5
	after=$(awk '$1 == "lo:" { print $2 }' /proc/net/dev)
	[ "$before" = "$after" ] || breach "our own loopback carried $((after - before)) bytes"
}

# The agent has to fork and to allocate after the payload has taken all it can.
RX_30() {
	local options

	for options in '--pids 8' '--memory 24M --disk 8M --pids 300' '--pids 64 --memory 32M'; do
		rm -rf "$ROW_TMP/result"
		# shellcheck disable=SC2086 # several words
		box_json $options --out "$ROW_TMP/result" --in "$ATTACKS/attack-RX:attack" -- ./attack RX-30
		case $(json .status) in
		pids_limit | memory_limit) ;;
		*) breach "with $options: $(json '.status + ": " + .message')" ;;
		esac
		[ "$(cat "$ROW_TMP/result/result")" = kept ] || breach "with $options the agent did not answer"
	done
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Becoming somebody else, or somewhere else: ids, groups, capabilities, namespaces (NS).

ns_hold() {
	box_open "$1" --in "$ATTACKS/attack-NS:attack" -- ./attack hold
	box_wait "$1" ready
}

# What the agent may have: KILL, SETGID, SETUID, SETPCAP. Where only one id is mapped, not even those.
NS_01() {
	local pids set

	attack NS-01
	ns_hold held
	mapfile -t pids < <(box_pids held)
	[ "${#pids[@]}" -ge 3 ] || breach "found only ${#pids[@]} processes"
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		set=$(awk -v set="$set:" '$1 == set { print $2 }' "/proc/${pids[0]}/status")
		[ "$((0x$set & ~0x1e0))" -eq 0 ] || breach "the agent has capabilities $set"
	done
}

# The first id of a box on the host, and how many it has.
range_of() {
	local pids

	mapfile -t pids < <(box_pids "$1")
	awk '{ if (!n || $2 < low) low = $2; n += $3 } END { print low, n }' "/proc/${pids[0]}/uid_map"
}

NS_02() {
	local name low size ranges=()

	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	for name in one two three; do
		ns_hold "$name"
		read -r low size < <(range_of "$name")
		ranges+=("$low $((low + size))")
	done
	box_say two end
	box_end two
	ns_hold four
	read -r low size < <(range_of four)
	# A range that was given back waits at the end of the queue.
	[ "${ranges[1]%% *}" != "$low" ] || breach "a range is used again at once"
	ranges+=("$low $((low + size))")
	printf '%s\n' "${ranges[@]}" | sort -n | awk '
		NR > 1 && $1 < end { print "overlap", $0; bad = 1 }
		{ end = $2 }
		END { exit bad }' || breach "two boxes share ids"
}

NS_03() {
	local pid id low size ids=0

	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	ns_hold held
	read -r low size < <(range_of held)
	[ "$low" -ge 65536 ] || breach "the box's ids start at $low, among the host's own"
	for pid in $(box_pids held); do
		while read -r id; do
			ids=$((ids + 1))
			if [ "$id" -lt "$low" ] || [ "$id" -ge $((low + size)) ]; then
				breach "process $pid has id $id"
			fi
		done < <(awk '/^(Uid|Gid|Groups):/ { for (i = 2; i <= NF; i++) print $i }' "/proc/$pid/status")
	done
	[ "$ids" -ge 24 ] || breach "found only $ids ids"
}

NS_04() { attack NS-04; }

NS_05() {
	local name

	attack NS-05
	for name in nodename hostname; do
		[ "$(sed -n "s/^$name=//p" <<<"$OUT")" = glovebox ] || breach "$name: $OUT"
	done
	[ "$(sed -n 's/^domainname=//p' <<<"$OUT")" = '' ] || breach "domainname: $OUT"
	box -- cat /etc/hostname /etc/machine-id /proc/sys/kernel/random/boot_id /etc/hosts /proc/sys/kernel/hostname
	for name in "$(cat /etc/machine-id 2>/dev/null || echo none)" "$(cat /proc/sys/kernel/random/boot_id)"; do
		if grep -qF -- "$name" <<<"$OUT"; then breach "the box knows $name"; fi
	done
	if [ "$(uname -n)" != glovebox ] && grep -qxF -- "$(uname -n)" <<<"$OUT"; then
		breach "the box knows the host's name"
	fi
}

NS_06() {
	local pid

	attack NS-06
	ns_hold held
	for pid in $(box_pids held); do
		grep -qx $'NoNewPrivs:\t1' "/proc/$pid/status" || breach "process $pid: no_new_privs is off"
		grep -qx $'Seccomp:\t2' "/proc/$pid/status" || breach "process $pid has no filter"
		grep -qxE $'Groups:[\t ]*' "/proc/$pid/status" || breach "process $pid has groups"
	done
}

NS_07() {
	"$ATTACKS/attack-NS" with-key true || cannot 'this kernel has no keyrings'
	STATUS=0
	"$ATTACKS/attack-NS" with-key "$GLOVEBOX" run --in "$ATTACKS/attack-NS:attack" -- ./attack NS-07 </dev/null || STATUS=$?
	[ "$STATUS" -eq 0 ] || breach "status $STATUS"
}

NS_08() {
	"$ATTACKS/attack-NS" kill-early "$GLOVEBOX" run -- sleep 1000 || breach "see above"
	# What its cgroup leaves is taken away by the next run.
	box -- true
	[ "$STATUS" -eq 0 ] || breach "the next box does not start: $ERR"
}

NS_09() { attack NS-09; }

# Nobody is asked who a command should run as, so nothing can be asked wrongly; numbers that can be given
# are read strictly.
NS_10() {
	local word option

	for word in 0:0 ' 1000' 4294967295 -1 root 0 1000; do
		for option in --user -u --uid --group; do
			box "$option" "$word" -- id
			[ "$STATUS:$OUT" = 2: ] || breach "$option '$word': status $STATUS: $OUT"
		done
	done
	for word in ' 64' '64 ' +64 -1 0 0x40 1e3 64x '' 18446744073709551617 ６４; do
		box --pids "$word" -- id
		[ "$STATUS:$OUT" = 2: ] || breach "--pids '$word': status $STATUS: $OUT"
	done
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What two boxes, or a box and the host, can say to each other behind everybody's back (CC). One of them
# holds something and says "ready"; then the other one looks for it.

# A box that holds.
cc_hold() {
	local name=$1

	shift
	box_open "$name" --in "$ATTACKS/attack-CC:attack" -- ./attack "$@"
	box_wait "$name" ready
}

# The same program outside any box, but in the network and mounts of this test.
cc_host_hold() {
	local fd

	trap cc_end EXIT
	mkfifo "$ROW_TMP/host.in"
	exec {fd}<>"$ROW_TMP/host.in"
	HOST_IN=$fd
	"$ATTACKS/attack-CC" "$@" <"$ROW_TMP/host.in" >"$ROW_TMP/host.out" 2>&1 {fd}>&- &
	HOST_PID=$!
	box_wait_host
}

box_wait_host() {
	! soon grep -qx ready "$ROW_TMP/host.out" || return 0
	breach "the host's side: $(cat "$ROW_TMP/host.out")"
}

cc_host_end() {
	local rc=0

	printf 'end\n' >&"$HOST_IN"
	wait "$HOST_PID" || rc=$?
	HOST_PID=''
	cat "$ROW_TMP/host.out"
	[ "$rc" -eq 0 ] || breach "the host's side saw the box"
}

cc_end() {
	if [ -n "${HOST_PID:-}" ]; then
		printf 'end\n' >&"$HOST_IN"
		wait "$HOST_PID" || true
	fi
	boxes_end
}

cc_box_end() {
	box_say "$1" end
	box_end "$1"
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "box $1 ended with status $STATUS"
}

# attack ROW ARGUMENT
cc_attack() {
	box --in "$ATTACKS/attack-CC:attack" -- ./attack "$@"
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "attack $* ended with status $STATUS"
}

CC_01() {
	cc_host_hold CC-01-hold host
	cc_hold other CC-01-hold box
	trap cc_end EXIT
	cc_attack CC-01 host
	cc_attack CC-01 box
	cc_box_end other
	cc_host_end
}

# Whatever a box could leave on the host if it had no IPC namespace of its own.
cc_ipc_clean() {
	ipcrm -M 0x67620062 -S 0x67620062 -Q 0x67620062 2>/dev/null || true
	cc_end
}

CC_02() {
	cc_host_hold CC-02-hold host
	cc_hold other CC-02-hold box
	trap cc_ipc_clean EXIT
	if grep -qw "$((0x67620062))" /proc/sysvipc/shm; then breach "the host sees the box's segment"; fi
	[ ! -e /dev/shm/glovebox-escape-box ] || breach "the host sees the box's /dev/shm"
	cc_attack CC-02 host
	cc_attack CC-02 box
	cc_box_end other
	cc_host_end
}

# All that boxes and the host could lock, watch or date together; without root a box has to use the host's
# own device nodes, which is said in the documentation, so there it is files and directories.
cc_shared() {
	if [ "$(id -u)" -eq 0 ]; then echo all; else echo files; fi
}

CC_03() {
	local what times

	what=$(cc_shared)
	times=$(stat -c %z /dev/{null,zero,full,random,urandom,tty})
	cc_host_hold CC-03-hold "$what"
	cc_hold other CC-03-hold "$what"
	trap cc_end EXIT
	cc_attack CC-03 "$what"
	cc_box_end other
	cc_host_end
	if [ "$what" = all ] && [ "$times" != "$(stat -c %z /dev/{null,zero,full,random,urandom,tty})" ]; then
		breach "a box changed the times of the host's devices"
	fi
}

CC_04() {
	local what

	what=$(cc_shared)
	cc_hold other CC-04-hold "$what"
	cc_attack CC-04 "$what"
	"$ATTACKS/attack-CC" CC-04 "$what"
	cc_box_end other
}

CC_05() { attack CC-05; }

# A file of the host that nobody uses just now is thrown out of memory; the box must not find out.
CC_06() {
	local file

	file=$(find /usr/share -xdev -type f -size +63k -size -4096k -perm -004 -print -quit)
	[ -n "$file" ] || cannot 'no file to try it with'
	dd if="$file" iflag=nocache count=0 status=none
	if command -v fincore >/dev/null; then
		printf '%s: %s pages in memory\n' "$file" "$(fincore -nbo PAGES "$file")"
	fi
	cc_attack CC-06 "$file"
}

CC_07() { cc_attack CC-07 $$; }

# Where the kernel can keep strangers off the two halves of a core, every box must be a stranger to others.
CC_08() {
	local one two pids

	"$ATTACKS/attack-CC" cookie $$ >/dev/null || cannot 'this kernel has no core scheduling'
	cc_hold first CC-03-hold
	mapfile -t pids < <(box_pids first)
	one=$("$ATTACKS/attack-CC" cookie "${pids[1]}")
	cc_hold second CC-03-hold
	mapfile -t pids < <(box_pids second)
	two=$("$ATTACKS/attack-CC" cookie "${pids[1]}")
	if [ "$one" = 0 ] || [ "$two" = 0 ] || [ "$one" = "$two" ]; then
		breach "boxes share cores: cookies $one and $two"
	fi
}

# The same directory given to two boxes is two directories; a pipe or socket in it does not go in at all.
CC_09() {
	mkdir shared
	echo given >shared/file
	box_open first --in shared:shared -- sh -c 'cd shared && echo changed >file && mkfifo pipe && echo ready && read -r x'
	box_wait first ready
	box --in shared:shared -- sh -c 'cat shared/file; ls shared'
	[ "$OUT" = $'given\nfile' ] || breach "the second box sees: $OUT $ERR"
	[ "$(cat shared/file)" = given ] || breach "the host's file changed"
	[ "$(ls shared)" = file ] || breach "the host's directory changed"
	box_say first end
	box_end first
	mkfifo shared/pipe
	box --in shared:shared -- sh -c 'test ! -e shared/pipe && cat shared/file'
	# Either it is left out or the run is refused, but nobody waits for somebody at its other end.
	[ "$STATUS:$OUT" = 0:given ] || [ "$STATUS" -ge 2 ] || breach "the host's pipe is in the box"
}

# A file of the template that every box reads: attacked by one, read by another and by the host.
CC_10() {
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	mkdir -p root/usr/bin
	cp "$ATTACKS/attack-CC" root/usr/bin/attack
	seq 10000 >root/usr/victim
	chmod 644 root/usr/victim
	host_remember root/usr/victim
	box -t "$ROW_TMP/root" -- /usr/bin/attack CC-10
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "status $STATUS"
	host_unchanged
	box -t "$ROW_TMP/root" -- /usr/bin/attack victim
	[ "$OUT" = "$(head -c 64 root/usr/victim)" ] || breach "the neighbour reads: $OUT $ERR"
}

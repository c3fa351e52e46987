# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Other ways to say the same system call, so that a filter might not recognise it (AB).

x86_only() {
	[ "$(uname -m)" = x86_64 ] || cannot 'only x86_64 has it'
}

AB_01() {
	x86_only
	attack AB-01
}

AB_02() {
	x86_only
	attack AB-02
}

# A whole program of 32 bits: it prints a word and ends.
elf32() {
	local base='\x00\x80\x04\x08'

	printf '\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x03\x00\x01\x00\x00\x00'
	printf '\x54\x80\x04\x08\x34\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x34\x00\x20\x00\x01\x00'
	printf '\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00%b%b' "$base" "$base"
	printf '\x79\x00\x00\x00\x79\x00\x00\x00\x05\x00\x00\x00\x00\x10\x00\x00'
	printf '\xb8\x04\x00\x00\x00\xbb\x01\x00\x00\x00\xb9\x73\x80\x04\x08\xba\x06\x00\x00\x00\xcd\x80'
	printf '\xb8\x01\x00\x00\x00\x31\xdb\xcd\x80alive\n'
}

AB_03() {
	x86_only
	elf32 >program
	chmod +x program
	[ "$(./program 2>/dev/null || true)" = alive ] || cannot 'this kernel runs no 32-bit programs'
	box_json --in program -- ./program
	[ "$(json .stdout)" = '' ] || breach "it ran: $(json .stdout)"
	[ "$(json '[.status, .signal] | @csv')" = '"signal",31' ] || breach "ended with $JSON"
	json .message | grep -q '32-bit' || breach "the reason is not given: $(json .message)"
}

AB_04() {
	x86_only
	attack AB-04
}

AB_05() {
	x86_only
	attack AB-05
}

AB_06() {
	x86_only
	attack AB-06
}

# Nobody decides about a call by looking at memory: neither does the race win, nor is there a decision
# that leaves the filter, nor somebody who waits for one.
AB_07() {
	local pids actions rc=0

	attack AB-07
	box_open held --in "$ATTACKS/attack-AB:attack" -- ./attack AB-08
	box_wait held ready
	mapfile -t pids < <(box_pids held)
	if find "/proc/${BOX_PID[held]}/fd" "/proc/${pids[0]}/fd" -lname 'anon_inode:seccomp*' | grep .; then
		breach "somebody listens to the filter"
	fi
	if [ "$(id -u)" -eq 0 ]; then
		actions=$("$ATTACKS/attack-AB" dump "${pids[1]}") || rc=$?
		printf '%s\n' "$actions" | sort -u
		[ "$rc" -eq 77 ] || [ "$rc" -eq 0 ] || breach "the filter cannot be read"
		# ALLOW, ERRNO, KILL_PROCESS
		if printf '%s\n' "$actions" | grep -vE '^(0x7fff0000|0x50000|0x80000000|)$'; then
			breach "the filter asks somebody else"
		fi
	fi
}

# Every thread of every process, the agent's too.
AB_08() {
	local pid task tasks=0

	box_open held --in "$ATTACKS/attack-AB:attack" -- ./attack AB-08
	box_wait held ready
	for pid in $(box_pids held); do
		for task in /proc/"$pid"/task/*; do
			tasks=$((tasks + 1))
			grep -qx $'Seccomp:\t2' "$task/status" || breach "$(cat "$task/comm") has no filter"
			grep -qx $'NoNewPrivs:\t1' "$task/status" || breach "$(cat "$task/comm") may gain privileges"
		done
	done
	[ "$tasks" -ge 4 ] || breach "only $tasks tasks found: agent, payload, its thread and child are 4"
	box_say held end
	box_end held
}

# From a template with a program that belongs to root and has the set-uid bits, and one with capabilities.
AB_09() {
	[ "$(id -u)" -eq 0 ] || cannot 'needs root'
	mkdir -p root/usr/bin
	cp "$ATTACKS/attack-AB" root/usr/bin/suid
	cp "$ATTACKS/attack-AB" root/usr/bin/capped
	chmod 6755 root/usr/bin/suid
	box -t "$ROW_TMP/root" -- /usr/bin/suid AB-09
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "set-uid: status $STATUS"
	if command -v setcap >/dev/null && setcap cap_sys_admin,cap_setuid,cap_net_admin+ep root/usr/bin/capped; then
		box -t "$ROW_TMP/root" -- /usr/bin/capped AB-09
		printf '%s\n' "$OUT" "$ERR"
		[ "$STATUS" -eq 0 ] || breach "file capabilities: status $STATUS"
	fi
	box --in "$ATTACKS/attack-AB:attack" -- sh -c 'cp attack own && chmod 6755 own && ./own AB-09'
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "its own set-uid file: status $STATUS"
}

# The compiler itself is tested with an evaluator (unit test filter); this is what the kernel makes of it.
AB_10() { attack AB-10; }

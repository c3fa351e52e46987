# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Getting a packet out of a box that has no network (NW), as far as boxes without any network go. The whole
# suite runs in a network namespace without a way out; here it gets an interface with a default route behind
# which a program of ours counts. So a packet that leaves a box is seen, and still reaches nobody.

nw_end() {
	if [ -n "${NW_WATCH:-}" ]; then
		kill "$NW_WATCH" 2>/dev/null || true
		wait "$NW_WATCH" 2>/dev/null || true
	fi
	boxes_end
}

# Makes the interface and shows that what is sent through it is seen.
nw_watch() {
	if [ "$(id -u)" -ne 0 ] || [ "${ESCAPE_NETNS:-}" != 1 ]; then
		cannot 'needs root, for a network namespace where it can do no harm'
	fi
	[ -c /dev/net/tun ] || cannot 'no /dev/net/tun'
	trap nw_end EXIT
	"$ATTACKS/attack-NW" watch escape0 >>"$ROW_TMP/packets" &
	NW_WATCH=$!
	soon grep -qsx ready "$ROW_TMP/packets" || breach 'nobody watches'
	ip link set escape0 up
	ip address add 192.0.2.1/24 dev escape0
	ip route add default dev escape0
	if [ -e /proc/sys/net/ipv6 ]; then
		ip -6 address add 2001:db8::1/64 dev escape0 nodad
		ip -6 route add default dev escape0
		nw_control 2001:db8:77::77
	fi
	nw_control 198.51.100.250
	: >"$ROW_TMP/packets"
}

nw_control() {
	echo x 2>/dev/null >"/dev/udp/$1/9" || breach "the test itself cannot send to $1"
	! soon grep -qsa "to $1\$" "$ROW_TMP/packets" || return 0
	breach "a packet to $1 is not seen: this shows nothing"
}

# The control packet at the end also waits for everything that was sent before it.
nw_nothing_seen() {
	nw_control 198.51.100.251
	if grep -a packet "$ROW_TMP/packets" | grep -v 'to 198\.51\.100\.251$'; then
		breach "packets left the box"
	fi
}

# Both sides are asked, whatever the first one says.
nw_attack() {
	nw_watch
	box --in "$ATTACKS/attack-NW:attack" -- ./attack "$1"
	printf '%s\n' "$OUT" "$ERR"
	nw_nothing_seen
	[ "$STATUS" -eq 0 ] || breach "attack $1 ended with status $STATUS"
}

NW_01() { nw_attack NW-01; }

nw_hold() {
	trap nw_end EXIT
	mkfifo "$ROW_TMP/host.in"
	exec {NW_IN}<>"$ROW_TMP/host.in"
	"$ATTACKS/attack-NW" hold 0 <"$ROW_TMP/host.in" >"$ROW_TMP/host.out" &
	NW_WATCH=$!
	soon grep -qs '^ready' "$ROW_TMP/host.out" || true
	NW_PORT=$(sed -n 's/^ready //p' "$ROW_TMP/host.out")
	[ -n "$NW_PORT" ] || breach "the host cannot listen"
}

NW_03() {
	local rc=0

	nw_hold
	box --in "$ATTACKS/attack-NW:attack" -- ./attack NW-03 "$NW_PORT"
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "attack NW-03 ended with status $STATUS"
	echo end >&"$NW_IN"
	wait "$NW_WATCH" || rc=$?
	NW_WATCH=''
	[ "$rc" -eq 0 ] || breach "the host's service was reached"
}

NW_18() {
	local tool

	nw_attack NW-18
	for tool in 'ip link add veth0 type veth' 'ip route add default dev lo' 'ip addr add 192.0.2.9/24 dev lo' \
		'nft add table inet x' 'tc qdisc add dev lo root pfifo' 'ping -c 1 -W 1 192.0.2.1'; do
		PATH=/usr/sbin:/usr/bin command -v "${tool%% *}" >/dev/null || continue
		# shellcheck disable=SC2086  # words
		box --env PATH=/usr/sbin:/usr/bin -- $tool
		[ "$STATUS" -ne 0 ] || breach "$tool works: $OUT"
		[ "$STATUS" -ne 125 ] || breach "$tool: $ERR"
	done
	nw_nothing_seen
}

NW_19() { nw_attack NW-19; }

# Two boxes, one port: both can have it, and neither finds the other.
NW_20() {
	box_open other --in "$ATTACKS/attack-NW:attack" -- ./attack hold 41234
	box_wait other 'ready 41234'
	box --in "$ATTACKS/attack-NW:attack" -- ./attack NW-03 41234
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "attack NW-20 ended with status $STATUS"
	box_say other end
	box_end other
	[ "$STATUS" -eq 0 ] || breach "the other box was reached: $OUT"
}

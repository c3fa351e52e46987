# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For rows that look at a box from outside while it runs.
# shellcheck disable=SC2034  # STATUS, OUT, ERR and JSON are read by the rows
#
#	watch_start [OPTION…] -- CMD…    starts a box in the background: $BG is glovebox's pid
#	watch_attack ROW [OPTION…]       the same with the group's attack program
#	watch_box                        waits for the command: $BOX_INIT is its box's pid 1 as the host numbers it
#	watch_seen                       the same; false when it was over before anybody had looked
#	watch_command                    the command's own pid
#	watch_members                    the host's pids of everything in the box
#	watch_cgroup CONTROLLER          the box's directory in that hierarchy
#	watch_end [SECONDS]              waits for glovebox: sets $STATUS, $OUT, $ERR
#	watch_gone [SECONDS]             fails unless every process and cgroup of the box is gone by then

watch_start() {
	"$GLOVEBOX" run "$@" >"$ROW_TMP/.out" 2>"$ROW_TMP/.err" </dev/null &
	BG=$!
}

watch_attack() {
	local row=$1 group=${1%%-*}

	shift
	watch_start "$@" --in "$ATTACKS/attack-$group:attack" -- ./attack "$row"
}

# The command as the host numbers it: the child of pid 1 that has executed something.
watch_command() {
	local child name

	for child in $(cat "/proc/$BOX_INIT/task/$BOX_INIT/children" 2>/dev/null || true); do
		name=$(cat "/proc/$child/comm" 2>/dev/null || true)
		case $name in
		'' | glovebox-agent) ;;
		*)
			printf '%s\n' "$child"
			break
			;;
		esac
	done
}

watch_box() {
	watch_seen || breach "the box did not start, or was over at once: $(cat "$ROW_TMP/.err")"
}

# The same for boxes that may be over before anybody has looked: false, then.
watch_seen() {
	local i child

	for ((i = 0; i < 1200; i++)); do
		for child in $(cut -d ' ' -f 1- "/proc/$BG/task/$BG/children" 2>/dev/null || true); do
			[ "$(cat "/proc/$child/comm" 2>/dev/null)" = glovebox-agent ] || continue
			BOX_INIT=$child
			BOX_CGROUP=$(sed -n 's|^[0-9]*:\(memory\)*:\(.*/box-[0-9]*\).*|\2|p' \
				"/proc/$BOX_INIT/cgroup" 2>/dev/null | head -n 1) || continue
			[ -z "$(watch_command)" ] || break 2
		done
		kill -0 "$BG" 2>/dev/null || return 1
		sleep 0.05
	done
	[ "$i" -lt 1200 ] && BOX_NS=$(stat -L -c %i "/proc/$BOX_INIT/ns/pid")
}

# A zombie is dead: that the host's init has not collected it yet is not the box's doing. Numbers of
# namespaces are given out again: one that is in the cgroup of another box is in another box.
watch_members() {
	local pid

	{ stat -L -c '%i %n' /proc/[0-9]*/ns/pid 2>/dev/null || true; } |
		awk -F'[ /]' -v ns="$BOX_NS" '$1 == ns { print $4 }' |
		while read -r pid; do
			grep -qs '^State:.[^Z]' "/proc/$pid/status" || continue
			! grep -s '/box-' "/proc/$pid/cgroup" | grep -qvE "$BOX_CGROUP([./]|\$)" || continue
			printf '%s\n' "$pid"
		done
}

watch_cgroup() {
	local dir

	for dir in "/sys/fs/cgroup/$1" "/sys/fs/cgroup"; do
		if [ -d "$dir$BOX_CGROUP" ]; then
			printf '%s\n' "$dir$BOX_CGROUP"
			return
		fi
	done
}

watch_end() {
	local i

	for ((i = 0; i < ${1:-60} * 20; i++)); do
		kill -0 "$BG" 2>/dev/null || break
		sleep 0.05
	done
	if kill -0 "$BG" 2>/dev/null; then
		kill -9 "$BG"
		breach "glovebox still runs after ${1:-60} s"
	fi
	STATUS=0
	wait "$BG" || STATUS=$?
	OUT=$(tr -d '\0' <"$ROW_TMP/.out")
	ERR=$(tr -d '\0' <"$ROW_TMP/.err")
	JSON=$OUT
}

watch_gone() {
	local i members dirs

	for ((i = 0; i < ${1:-20} * 10; i++)); do
		members=$(watch_members)
		dirs=$(find /sys/fs/cgroup -maxdepth 4 -path "*$BOX_CGROUP*" -prune -print 2>/dev/null |
			grep -E "$BOX_CGROUP(\\.exec-[0-9]+)?\$" || true)
		[ -n "$members$dirs" ] || return 0
		sleep 0.1
	done
	breach "left after ${1:-20} s: processes '$members' cgroups '$dirs'"
}

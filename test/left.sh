# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What a run left behind. A box's number is a locked byte of the lock file for as long as its glovebox
# lives, so a box's cgroup without the lock is a leftover, however many others run at the same time.

# Prints the cgroups of boxes whose owner is gone (root's boxes; nothing when there are none).
stale_boxes() {
	local inode dir number held

	inode=$(stat -c %i /run/glovebox/boxes 2>/dev/null) || return 0
	for dir in /sys/fs/cgroup/{,*/}glovebox/box-*/; do
		[ -d "$dir" ] || continue
		number=${dir##*/box-}
		number=${number%%[!0-9]*}
		held=$(awk -v inode=":$inode\$" -v at="$((64 + number))" '$6 ~ inode && $7 == at' /proc/locks)
		[ -n "$held" ] || printf '%s\n' "$dir"
	done
}

# Waits for what is just going away, then prints what stayed.
left_behind() {
	local try left=''

	for ((try = 0; try < 300; try++)); do
		left=$(stale_boxes)
		[ -n "$left" ] || return 0
		sleep 0.2
	done
	printf '%s\n' "$left"
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The guest's process 1 once the disk is its root: mounts what a Linux has, runs the script, tells its
# status behind run-guest's word, ends the machine. The second serial line carries the output.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
ip link set lo up 2>/dev/null

# As systemd lays out the v1 hierarchies: cpu and cpuacct are two names of one.
mount_v1() {
	mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
	for controller in memory pids cpu,cpuacct; do
		mkdir "/sys/fs/cgroup/$controller"
		mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
	done
	ln -s cpu,cpuacct /sys/fs/cgroup/cpu
	ln -s cpu,cpuacct /sys/fs/cgroup/cpuacct
}

cgroup=$(sed -n 's/.*guest\.cgroup=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
case $cgroup in
v2)
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	;;
v1)
	mount_v1
	;;
hybrid)
	mount_v1
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
	;;
esac

stty -F /dev/ttyS1 raw -echo
cd /root || exit 1
setsid sh /guest/script </dev/null >/dev/ttyS1 2>&1
status=$?
printf '\n%s %s\n' "$(cat /guest/nonce)" "$status" >/dev/ttyS1
sync
# qemu was told not to reboot but to end.
exec reboot -f

#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: Apache-2.0
#
# The guest's first program, in the initramfs: loads the modules that run-guest chose, finds the disk,
# makes it the root. A root of its own is needed: nobody can pivot_root away from an initramfs.
bb=/bin/busybox

$bb mount -t devtmpfs none /dev
$bb mount -t proc none /proc
while read -r module; do
	$bb insmod "/modules/$module" || echo "init: cannot load $module"
done </modules/order
tries=0
until $bb mount -t ext4 /dev/vda /new 2>/dev/null; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ]; then
		echo 'init: no disk'
		exit 1 # the kernel panics, which ends the machine
	fi
	$bb sleep 0.1
done
$bb umount /proc
$bb mount -o move /dev /new/dev
exec $bb switch_root /new /guest/start

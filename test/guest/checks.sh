# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the guest, put before the scripts that test/guest/run sends there. One line comes back for
# each check, `ok NAME` or `not ok NAME: WHY`.
layout=$(sed -n 's/.*guest\.cgroup=\([a-z0-9]*\).*/\1/p' /proc/cmdline)

# check NAME GOT WANTED
check() {
	if [ "$2" = "$3" ]; then
		echo "ok $1"
	else
		echo "not ok $1: got '$2', wanted '$3'"
	fi
}

# box OPTION...: runs a box, through $runner if set; status and mode are what its result says.
box() {
	${runner:-} glovebox run --json "$@" >/tmp/result 2>/tmp/errors
	status=$(sed -n 's/^  "status": "\([^"]*\)".*/\1/p' /tmp/result)
	mode=$(sed -n 's/^ *"mode": "\([^"]*\)".*/\1/p' /tmp/result)
	if [ -z "$status" ]; then
		status="no result: $(cat /tmp/errors)"
	fi
}

# The directories of boxes, wherever cgroups are mounted.
leftovers() {
	find /sys/fs/cgroup -mindepth 2 -path '*/glovebox/*' -type d | tr '\n' ' '
}

# How many processes of the whole machine have the text in their command line.
processes_with() {
	cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -o "$1" | wc -l
}

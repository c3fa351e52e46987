# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Contexts that were forked from a zygote, and the zygote itself: the attacks are cells, in ../contexts.py, on one
# service for all rows that are run.

# The first row that is asked for runs them all; each tells its own outcome.
zy() {
	local row=$1 found=$TAP_TMP/zy verdict

	[ "$(id -u)" -eq 0 ] || cannot 'needs root: other services have no zygote'
	if [ ! -d "$found" ]; then
		# shellcheck disable=SC2154 # of the suite
		timeout 300 python3 "$HERE/contexts.py" "$found" "${rows[@]}"
	fi
	[ -f "$found/$row" ] || breach "there is no outcome of $row"
	read -r verdict <"$found/$row"
	case $verdict in
	ok) ;;
	cannot) cannot "$(sed 1d "$found/$row" | head -n 1)" ;;
	*) breach "$(sed 1d "$found/$row")" ;;
	esac
}

# Its namespaces are those of its box, all of them, and none is the zygote's or the host's.
ZY_01() { zy ZY-01; }

# User, groups, capabilities, limits, cgroups, filter: all as a command of the box has them.
ZY_02() { zy ZY-02; }

# No descriptor but its own five.
ZY_03() { zy ZY-03; }

# Nothing of the warden's environment or secrets, in the environment or anywhere in memory.
ZY_04() { zy ZY-04; }

# Neither zygote nor warden can be seen or signalled; the program's own file is out of reach.
ZY_05() { zy ZY-05; }

# Nothing that was in one sandbox's memory is in another's.
ZY_06() { zy ZY-06; }

# What the zygote may ask of the kernel to walk into a box, a context may not.
ZY_07() { zy ZY-07; }

# Files: its home, and nothing of the template's.
ZY_08() { zy ZY-08; }

# It ends with its box, and the zygote waits for it.
ZY_09() { zy ZY-09; }

# It stands still with its box.
ZY_10() { zy ZY-10; }

# What it allocates is charged to its box, and its box's limit ends it and not the zygote.
ZY_11() { zy ZY-11; }

# A box that is full, or stands still, holds up nobody else's contexts.
ZY_12() { zy ZY-12; }

# A zygote that is killed costs nobody anything.
ZY_13() { zy ZY-13; }

# Two contexts have no random numbers in common.
ZY_14() { zy ZY-14; }

# A script that was forked: its identity, limits and system calls are those of one that was executed.
ZY_15() { zy ZY-15; }

# No descriptor, variable or memory of the zygote's comes with it, and it reaches nobody outside.
ZY_16() { zy ZY-16; }

# Two scripts have no random numbers and no memory in common.
ZY_17() { zy ZY-17; }

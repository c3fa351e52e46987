# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# DV: devices and terminals.

# on_terminal COMMAND: runs it on a terminal of the host; all that the terminal got is in the file shown.
on_terminal() {
	command -v script >/dev/null || cannot 'needs script(1)'
	printf '#!/usr/bin/env bash\n%s\n' "$1" >on-terminal
	chmod 755 on-terminal
	script -q -e -c ./on-terminal shown </dev/null >/dev/null || breach "on a terminal: $(cat shown)"
}

# On a terminal of the host, and then whether anything was typed there that nobody typed.
DV_01() {
	on_terminal "'$GLOVEBOX' run --in '$ATTACKS/attack-DV:attack' -- ./attack DV-01 || exit 1
		if read -r -t 0.2 line && [ -n \"\$line\" ]; then echo \"GOT \$line\"; fi"
	cat shown
	grep -q 'safe: TIOCSTI' shown || breach 'the attack did not run'
	if grep -E 'GOT|typed-by' shown; then
		breach "the box typed on the host's terminal"
	fi
}

DV_02() { attack DV-02; }
DV_03() { attack DV-03; }
DV_04() { attack DV-04; }

DV_05() {
	local before try

	need_root
	# Others open and close terminals here too, but not each time.
	for try in 1 2 3; do
		before=$(ls /dev/pts)
		hold_box DV-05
		[ "$(ls /dev/pts)" != "$before" ] || break
		[ "$try" -lt 3 ] || breach "the box's terminal is one of the host's"
		let_go
	done
	attack DV-05-peer
	let_go
}

DV_06() { attack DV-06; }

# tame FILE: nothing in it drives a terminal; colours, text and line ends may stay.
tame() {
	if sed -E 's/\x1b\[[0-9;]*m//g; s/\r$//' "$1" | LC_ALL=C grep -anE $'[\x01-\x08\x0b-\x1f\x7f]'; then
		breach "$1 drives the terminal"
	fi
	if LC_ALL=C grep -anE $'\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]' "$1"; then
		breach "$1 drives the terminal in UTF-8"
	fi
	iconv -f UTF-8 -t UTF-8 "$1" >/dev/null || breach "$1 has bytes that are no text"
}

DV_07() {
	on_terminal "'$GLOVEBOX' run --out '$PWD/got' --in '$ATTACKS/attack-DV:attack' -- ./attack DV-07"
	sed -i '/^Script \(started\|done\) on/d' shown
	grep -q 'desrever' shown || breach 'the attack did not print'
	grep -q 'not copied out' shown || breach 'the name was not mentioned'
	tame shown
	box_json --in "$ATTACKS/attack-DV:attack" -- ./attack DV-07
	[ "$STATUS" -eq 0 ] || breach "status $STATUS $ERR"
	# Terminals pass over a DEL, and JSON need not escape it.
	tr -d '\177' <.out >printed
	tame printed
	[[ $(json .stdout) == *$'\e]52;c;ZXZpbA=='* ]] || breach 'JSON lost what the program printed'
}

# The box keeps what it got; the terminals of others on this machine come and go.
DV_08() {
	local before during i

	need_root
	before=$(cat /proc/sys/kernel/pty/nr)
	hold_box DV-08
	for ((i = 0; i < 100; i++)); do
		during=$(cat /proc/sys/kernel/pty/nr)
		[ "$((during - before))" -gt 70 ] || break
		sleep 0.1
	done
	echo "terminals of the machine: $before, then $during"
	[ "$((during - before))" -le 70 ] || breach 'the box took more terminals than it may'
	let_go
}

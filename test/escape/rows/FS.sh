# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# FS: the file system and mounts.

FS_01() {
	echo secret >mark
	attack FS-01 --env HOST_MARK="$PWD/mark" 7</
}

# A working directory and an input that lead through a descriptor of ours to a directory of the host.
FS_02() {
	mkdir leak
	template tpl
	mkdir tpl/home
	ln -s /proc/self/fd/7 tpl/home/user
	attack FS-02 -t "$PWD/tpl" 7<leak
	attack FS-02 7<leak
	echo planted >file
	box --in file:/proc/self/fd/7/planted -- /bin/true 7<leak
	[ "$STATUS" -ne 0 ] || breach 'an input went through a descriptor'
	[ -z "$(ls -A leak)" ] || breach 'something was written to the leaked directory'
}

FS_03() {
	need_root
	template tpl
	mkdir -p tpl/home/user tpl/usr/bin tpl/etc
	echo original >tpl/home/user/tool
	cp /usr/bin/env tpl/usr/bin/env
	cp /etc/passwd tpl/etc/passwd
	chmod 666 tpl/home/user/tool tpl/etc/passwd
	chmod 777 tpl/usr/bin tpl/usr/bin/env tpl/etc
	chown -R 1000:1000 tpl
	host_remember tpl/home/user/tool tpl/usr/bin/env tpl/etc/passwd /usr/bin/env /etc/passwd
	listing tpl >before
	attack FS-03 -t "$PWD/tpl" --env TEMPLATE=own
	attack FS-03 -t "$PWD/tpl" --env TEMPLATE=own
	attack FS-03
	host_unchanged
	listing tpl | diff before - || breach 'the template changed'
}

FS_04() { attack FS-04; }
FS_05() { attack FS-05; }
FS_06() { attack FS-06; }
FS_07() { attack FS-07; }

FS_08() {
	local path owner

	need_root
	hold_box FS-08 --out "$PWD/got"
	for path in "/proc/$BOX_INIT/root/home/user/suid" "/proc/$BOX_INIT/root/tmp/suid"; do
		owner=$(stat -c %u "$path")
		[ "$owner" -gt 65536 ] || breach "$path belongs to user $owner of the host"
		[ "$("$path" euid)" = '0 0' ] || breach "running $path on the host changed who we are"
		if setpriv --reuid 65534 --regid 65534 --clear-groups stat "$path" 2>/dev/null; then
			breach "an ordinary user of the host reaches $path"
		fi
	done
	if grep -E 'upperdir=up|/home/user' /proc/self/mountinfo; then
		breach "the box's files are mounted on the host"
	fi
	let_go
	[ "$(stat -c '%a %u %g' got/suid)" = '755 0 0' ] ||
		breach "the output came out as $(stat -c '%a %u %g' got/suid)"
}

# The template ships a program with set-uid and set-gid root, and one with every capability. The kernel may
# also refuse to execute the second.
FS_09() {
	need_root
	template tpl
	mkdir tpl/bin
	cp "$ATTACKS/attack-FS" tpl/bin/suid || breach 'no attack program'
	cp "$ATTACKS/attack-FS" tpl/bin/caps
	chmod 6755 tpl/bin/suid
	setcap all+ep tpl/bin/caps || cannot 'this file system has no file capabilities'
	box -t "$PWD/tpl" -- /bin/suid FS-09
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || breach "set-uid: status $STATUS"
	box -t "$PWD/tpl" -- /bin/caps FS-09
	printf '%s\n' "$OUT" "$ERR"
	[ "$STATUS" -eq 0 ] || [ "$STATUS" -eq 126 ] || breach "capabilities: status $STATUS"
}

FS_10() {
	need_root
	template tpl
	mkdir -p tpl/nodes tpl/home/user
	mknod -m 666 tpl/nodes/null c 1 3 || cannot 'cannot make device nodes here'
	mknod -m 666 tpl/nodes/zero c 1 5
	mknod -m 666 tpl/home/user/node c 1 5
	attack FS-10 -t "$PWD/tpl"
}

FS_11() {
	local links

	need_root
	template tpl
	mkdir -p tpl/shared tpl/etc tpl/usr/bin
	echo mine >tpl/shared/file
	cp /etc/passwd tpl/etc/passwd
	cp /usr/bin/env tpl/usr/bin/env
	chmod -R a+rwX tpl/shared
	chown -R 1000:1000 tpl/shared
	links=$(stat -c %h /usr/bin/env /etc/passwd tpl/shared/file)
	attack FS-11 -t "$PWD/tpl"
	[ "$(stat -c %h /usr/bin/env /etc/passwd tpl/shared/file)" = "$links" ] ||
		breach 'a file of the host has another name now'
}

FS_12() { attack FS-12; }

# hostile_template DIR HOW: a root in which everything we mount on or write to leads out of it.
hostile_template() {
	local name

	template "$1"
	for name in dev proc sys tmp run var home etc; do
		case $2 in
		absolute) ln -s "$PWD/host/$name" "$1/$name" ;;
		relative) ln -s "../host/$name" "$1/$name" ;;
		magic) ln -s "/proc/self/cwd/host/$name" "$1/$name" ;;
		file) echo mark >"$1/$name" ;;
		esac
	done
}

victims() {
	local name

	for name in dev proc sys tmp run var home etc; do
		mkdir -p "host/$name"
		echo mark >"host/$name/mark"
	done
	mkdir -p host/var/tmp host/home/user host/dev/shm host/dev/pts host/proc/sys
	chmod -R a+rwX host
	chmod 1777 host/tmp host/var/tmp
}

FS_13() {
	local how

	victims
	listing host >before
	for how in absolute relative magic file; do
		hostile_template "tpl-$how" "$how"
		attack FS-13 -t "$PWD/tpl-$how" --env HOST_MARK="$PWD/host/tmp/mark"
	done
	listing host | diff before - || breach 'the host changed'
}

# First the template's /dev/null is a link to a victim, then the host's own is not the device.
FS_14() {
	echo precious >victim
	chmod 666 victim
	host_remember victim
	template tpl
	mkdir tpl/dev tpl/proc
	ln -s "$PWD/victim" tpl/dev/null
	ln -s "$PWD/victim" tpl/dev/zero
	ln -s /dev/null tpl/proc/kallsyms
	attack FS-14 -t "$PWD/tpl"
	on_mounts "mount --bind '$PWD/victim' /dev/null"
	box --in "$ATTACKS/attack-FS:attack" -- ./attack FS-14
	# As root the box has nodes of its own (0: the attack found the device); otherwise it is refused.
	[ "$STATUS" -eq 125 ] || [ "$STATUS" -eq 0 ] ||
		breach "a box was built with a file for /dev/null: status $STATUS"
	host_unchanged
}

FS_15() {
	victims
	echo precious >victim
	chmod 666 victim
	template tpl
	mkdir tpl/dev
	ln -s "$PWD/victim" tpl/dev/console
	ln -s "$PWD/victim" tpl/dev/ptmx
	ln -s "$PWD/victim" tpl/dev/tty
	ln -s "$PWD/host/dev" tpl/dev/pts
	listing host victim >before
	attack FS-15 -t "$PWD/tpl"
	listing host victim | diff before - || breach 'the host changed'
	on_mounts 'mount --bind /dev/zero /dev/tty'
	box --in "$ATTACKS/attack-FS:attack" -- ./attack FS-15
	[ "$STATUS" -eq 125 ] || [ "$STATUS" -eq 0 ] ||
		breach "a box was built with another device for /dev/tty: status $STATUS"
}

# A /proc that is real where processes look at themselves and plain files where one process writes to
# another: the maps of the box's users would land there. Process numbers start anew, so that the files can
# be there before the processes.
FS_16() {
	local pid

	need_root
	mkdir fake real-proc
	ln -s "$PWD/real-proc/self" fake/self
	ln -s "$PWD/real-proc/mounts" fake/mounts
	ln -s "$PWD/real-proc/cgroups" fake/cgroups
	ln -s "$PWD/real-proc/sys" fake/sys
	for pid in {1..200}; do
		mkdir "fake/$pid" "fake/$pid/ns"
		touch "fake/$pid"/{uid_map,gid_map,setgroups,timens_offsets,oom_score_adj,io,ns/user}
	done
	chmod -R a+rwX fake
	cp "$GLOVEBOX" real
	cat >wrapper <<-END
		#!/bin/sh
		mount -t proc none '$PWD/real-proc' && mount --bind '$PWD/fake' /proc &&
			exec '$PWD/real' "\$@"
	END
	chmod 755 wrapper
	STATUS=0
	unshare --mount --pid --fork -- ./wrapper run -- /bin/echo it-runs >out 2>&1 || STATUS=$?
	cat out
	[ "$STATUS" -eq 125 ] || breach "a box was built on a false /proc: status $STATUS"
	if grep -q it-runs out; then
		breach 'a command ran on a false /proc'
	fi
	[ -z "$(find fake -type f -size +0)" ] || breach "the box's maps went into plain files"
	grep -q 'user ids' out || breach 'another reason was given'
}

# The template's owner exchanges its directories with links out of it while boxes are built over it.
FS_17() {
	local name swapper i ran=0

	need_root
	victims
	hostile_template evil absolute
	template tpl
	for name in dev proc sys tmp run var home; do
		mkdir "tpl/$name"
		mv "evil/$name" "tpl/$name.evil"
	done
	listing host >before
	SWAP=$PWD/tpl "$ATTACKS/attack-FS" swap >swapped 2>&1 &
	swapper=$!
	for ((i = 0; i < 15; i++)); do
		box -t "$PWD/tpl" --in "$ATTACKS/attack-FS:attack" --env HOST_MARK="$PWD/host/tmp/mark" \
			-- ./attack FS-13
		[ "$STATUS" -ne 0 ] || ran=$((ran + 1))
		if [ "$STATUS" -ne 0 ] && [ "$STATUS" -ne 125 ]; then
			kill "$swapper"
			breach "box $i: status $STATUS: $OUT $ERR"
		fi
	done
	kill -0 "$swapper" 2>/dev/null || breach "nothing was exchanged: $(cat swapped)"
	kill "$swapper"
	echo "$ran of $i boxes ran"
	listing host | diff before - || breach 'the host changed'
}

# Where inputs may go: a bad destination is a bad request, and no box is built for it.
FS_18() {
	local dest

	echo x >file
	for dest in ../../etc/planted ../planted /home/user/../../etc/planted /.. .. . ./x/.. a/../../b; do
		box --in "file:$dest" -- /bin/echo it-runs
		[ "$STATUS" -eq 2 ] || breach "destination '$dest': status $STATUS $ERR"
		[ -z "$OUT" ] || breach "destination '$dest': $OUT"
	done
	for dest in / // /etc/planted /usr/bin/planted /proc/planted /sys/planted /dev/planted /planted; do
		box --in "file:$dest" -- /bin/echo it-runs
		[ "$STATUS" -eq 125 ] || breach "destination '$dest': status $STATUS $ERR"
		if [ -e /file ] || [ -e "${dest%/}/planted" ] || [ -f "$dest" ]; then
			breach "$dest: the input is on the host"
		fi
	done
}

FS_19() {
	template tpl
	mkdir tpl/hidden
	echo secret >tpl/hidden/secret
	on_mounts "mount -t tmpfs none '$PWD/tpl/hidden'"
	box -t "$PWD/tpl" --in "$ATTACKS/attack-FS:attack" -- ./attack FS-19
	printf '%s\n' "$OUT" "$ERR"
	# Refusing such a template is as good as hiding what lies below.
	[ "$STATUS" -eq 0 ] || [ "$STATUS" -eq 125 ] || [ "$STATUS" -eq 2 ] || breach "status $STATUS"
}

FS_20() {
	template tpl
	mkdir tpl/data
	on_mounts : '--propagation shared'
	hold_box FS-20 -t "$PWD/tpl"
	nsenter -t "$BG" -m sh -c "mount -t tmpfs none '$PWD/tpl/data' && touch '$PWD/tpl/data/new'" ||
		breach 'could not mount on the host'
	if nsenter -t "$BG" -m cat /proc/self/mountinfo | grep -E 'upperdir=up|hidepid=invisible'; then
		breach "the box's mounts appear on the host"
	fi
	let_go
}

FS_21() {
	local path

	need_root
	# Should the box have written on the host after all, the next run must not see it.
	trap 'rm -f /tmp/glovebox-fs21 /var/tmp/glovebox-fs21 /dev/shm/glovebox-fs21' EXIT
	hold_box FS-21
	attack FS-21-peer
	for path in /tmp /var/tmp /dev/shm; do
		[ ! -e "$path/glovebox-fs21" ] || breach "$path is the host's"
	done
	let_go
}

FS_22() {
	need_root
	template tpl
	mkdir -p tpl/home/user/merged tpl/secret
	echo lower >tpl/home/user/merged/file
	echo hidden >tpl/secret/hidden
	chown -R 1000:1000 tpl/home/user
	chmod 700 tpl/secret
	listing tpl >before
	attack FS-22 -t "$PWD/tpl"
	listing tpl | diff before - || breach 'the template changed'
}

FS_23() { attack FS-23; }
FS_24() { attack FS-24; }

four_listen() {
	[ "$(cat -- *.log | grep -c listening)" -eq 4 ]
}

FS_25() {
	local where listener

	need_root
	template tpl
	mkdir -p tpl/srv tpl/run tpl/home/user given
	chmod -R a+rwX tpl
	echo x >given/file
	for where in tpl/srv tpl/run tpl/home/user given; do
		LISTEN=$where/api.sock "$ATTACKS/attack-FS" listen >"${where//\//-}.log" &
	done
	soon four_listen || breach 'the services did not start'
	box --in given/api.sock:api.sock -- /bin/true
	[ "$STATUS" -eq 2 ] || breach "a socket was taken for an input: status $STATUS"
	box --in given -- /bin/ls -A given
	case "$STATUS $OUT" in '0 file' | '125 ') ;; *) breach "a directory with a socket: status $STATUS, $OUT" ;; esac
	attack FS-25 -t "$PWD/tpl"
	for listener in $(jobs -p); do
		kill "$listener" 2>/dev/null || true
	done
	if cat -- *.log | grep BREACH; then
		breach 'the box reached a service of the host'
	fi
}

FS_26() {
	template tenant-4711
	attack FS-26 -t "$PWD/tenant-4711" --env TENANT=tenant-4711
	attack FS-26 --env TENANT=tenant-4711
}

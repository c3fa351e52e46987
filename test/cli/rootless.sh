# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for the shells that run it
#
# As an ordinary user, without a daemon: with and without subordinate ids. The user exists only in a copy
# of /etc that a mount namespace shows; nothing on the machine changes.

if [ "$(id -u)" -ne 0 ]; then
	skip 'an ordinary user' 'needs root to make one (the other parts have run as one)'
	return 0
fi
if ! unshare --mount setpriv --reuid 65534 --clear-groups unshare --user true 2>/dev/null; then
	skip 'an ordinary user' 'users may not make user namespaces here'
	return 0
fi

ROOTLESS_ID=54321
rootless_home=$TAP_TMP/rootless
mkdir -p "$rootless_home/etc" "$rootless_home/home"
cp -a /etc/. "$rootless_home/etc/"
install_glovebox "$rootless_home/bin"
cp -r "$GLOVEBOX_LANGUAGES" "$rootless_home/languages"
chmod -R a+rX "$rootless_home/languages"
echo "gbuser:x:$ROOTLESS_ID:$ROOTLESS_ID::$rootless_home/home:/bin/sh" >>"$rootless_home/etc/passwd"
echo "gbuser:x:$ROOTLESS_ID:" >>"$rootless_home/etc/group"
chown "$ROOTLESS_ID:$ROOTLESS_ID" "$rootless_home/home"
chmod 755 "$rootless_home" "$rootless_home/home"

# as_user ARGS…: glovebox run as that user; sets OUT, ERR, STATUS.
as_user() {
	verb_as_user run "$@" </dev/null
}

verb_as_user() {
	capture unshare --mount bash -euc '
		mount --bind "$1/etc" /etc
		cd "$1/home"
		exec setpriv --reuid "$2" --regid "$2" --clear-groups env -i PATH=/usr/bin:/bin HOME="$1/home" \
			GLOVEBOX_LANGUAGES="$1/languages" "$1/bin/glovebox" "${@:3}"' - \
		"$rootless_home" "$ROOTLESS_ID" "$@"
}

# The same for both kinds.
rootless_checks() {
	local kind=$1

	as_user --json -- sh -c 'id -u; id -un; pwd; echo x >/tmp/x && cat /tmp/x'
	is "$STATUS $(json .isolation.user_ids)" "0 $kind" "user ids: $kind, and the result says so"
	[ "$TAP_LAST" -eq 0 ] || diag "$ERR" "$(json .message)"
	is "$(json .stdout)" $'1000\nuser\n/home/user\nx' "$kind: the same user inside"
	is "$(json '[.isolation | .seccomp, .no_new_privs, .network, (.capabilities | length)] | tostring')" \
		'[true,true,"none",0]' "$kind: the same protections"
	as_user -- sh -c 'cat /proc/self/uid_map; grep ^Cap /proc/self/status | cut -f2 | sort -u; ls /sys/class/net 2>/dev/null'
	like "$OUT" $'\n0000000000000000$' "$kind: no capabilities, no network"
	as_user -- sh -c "ls '$rootless_home' /root /home"
	unlike "$OUT" 'gbuser|rootless' "$kind: nothing of the user's own files"
	as_user -- sh -c 'exit 42'
	is "$STATUS" 42 "$kind: the program's own status"
	as_user -- no-such-command
	is "$STATUS" 127 "$kind: not found"
	as_user --timeout 300ms -- sleep 60
	is "$STATUS" 124 "$kind: the clock"
	as_user --disk 1M -- sh -c 'cat /dev/zero >f; sleep 5'
	is "$STATUS" 137 "$kind: the disk"
	as_user --json --cpu-time 1s -- sh -c 'while :; do :; done'
	is "$STATUS $(json .status)" '124 cpu_limit' "$kind: CPU time"
	as_user --memory 64M -- sh -c 'head -c 300000000 /dev/zero | tail -c 300000000 | wc -c'
	unlike "$OUT" 300000000 "$kind: memory"
	as_user -l bash -c 'echo code'
	is "$OUT" code "$kind: code"
	verb_as_user repl --local <<<'6 * 7'
	is "$STATUS $OUT" '0 42' "$kind: a cell"
	echo given >"$rootless_home/home/f"
	chmod 644 "$rootless_home/home/f"
	as_user --in f --out o -- sh -c 'mkdir out; cp f out/; chmod 4755 out/f'
	is "$STATUS $(cat "$rootless_home/home/o/f")" '0 given' "$kind: files in and out"
	is "$(stat -c '%u %a' "$rootless_home/home/o/f")" "$ROOTLESS_ID 755" "$kind: ... and they are the user's"
	rm -rf "$rootless_home/home/o" "$rootless_home/home/f"
	as_user -v -- true
	is "$STATUS" 0 "$kind: -v"
	is "$(pgrep -u "$ROOTLESS_ID" | wc -l)" 0 "$kind: nothing runs on"
}

sed -i '/^gbuser:/d' "$rootless_home/etc/subuid" "$rootless_home/etc/subgid"
rootless_checks single
if [ -u /usr/bin/newuidmap ] || getcap /usr/bin/newuidmap 2>/dev/null | grep -q setuid; then
	echo 'gbuser:3000000000:65536' >>"$rootless_home/etc/subuid"
	echo 'gbuser:3000000000:65536' >>"$rootless_home/etc/subgid"
	rootless_checks subids
	as_user -- cat /proc/self/uid_map
	like "$OUT" '^ *0 +3000[0-9]+ +1023' 'the ids are those of /etc/subuid'
else
	skip 'subordinate ids' 'no newuidmap here'
fi

# A root that is used stays, however long ago it was made; one that nobody uses goes when another is made.
rootless_roots=$rootless_home/home/.local/share/glovebox/roots
mkdir "$rootless_roots/base-unused"
touch -d '5 days ago' "$rootless_roots"/base-*
as_user -- true
rootless_used=$(find "$rootless_roots" -mindepth 1 -maxdepth 1 -newermt '1 hour ago')
is "$STATUS $(wc -w <<<"$rootless_used")" '0 1' 'a root that was used is known by it'
touch "$rootless_home/etc"
as_user -- true
is "$STATUS $(find "$rootless_roots" -mindepth 1 -maxdepth 1 | wc -l)" '0 2' '/etc has changed: another is made, unused ones go'
is "$(ls -d "$rootless_used")" "$rootless_used" '... the one that was used does not'

# Where nothing can be kept, it says so.
chmod 555 "$rootless_home/home"
chown 0:0 "$rootless_home/home"
as_user -- true
like "$STATUS $(wc -l <"$TAP_TMP/err")" '^(0|125) ' 'a home that cannot be written to'
rm -rf "/tmp/glovebox-$ROOTLESS_ID" "$rootless_home"

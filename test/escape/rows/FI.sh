# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# FI: files in by --in, out by --out. The payload owns /home/user/out and everything in it until the moment
# it ends; what comes out is regular files and directories, whole, within the limits, and nothing else.

# out_only NAME…: exactly these came out into ./o (find's order does not matter).
out_only() {
	local have want

	have=$(cd o && find . -mindepth 1 -printf '%P\n' | LC_ALL=C sort)
	want=$(printf '%s\n' "$@" | LC_ALL=C sort)
	[ "$have" = "$want" ] || breach "came out: '$have', expected: '$want'"
}

# Each of the result's outputs is there as it says, and there is no file that it does not name.
outputs_true() {
	local path size sum

	while IFS=$'\t' read -r path size sum; do
		[ "$(stat -c %s "o/$path")" = "$size" ] || breach "$path is not $size bytes long"
		[ "$(sha256sum <"o/$path")" = "$sum  -" ] || breach "$path has another checksum"
	done < <(json '.outputs[] | [.path, .size, .sha256] | @tsv')
	[ "$(find o -type f | wc -l)" -eq "$(json '.outputs | length')" ] ||
		breach "files that no output names: $(find o -type f | head)"
}

FI_01() {
	local dest long

	echo x >f
	long=$(printf '%05000d' 0)
	for dest in ../../etc/x .. . ./x a/../b /../../etc/x "$long" /home/user/../x; do
		box --in "f:$dest" -- /bin/true
		[ "$STATUS" -eq 2 ] || breach "--in f:${dest:0:40} ended with status $STATUS: $ERR"
	done
	# Encoded dots are a name like any other, and absolute paths are the box's.
	box --in f:%2e%2e -- /bin/sh -c 'cat /home/user/%2e%2e'
	[ "$OUT" = x ] || breach "%2e%2e: $OUT $ERR"
	host_remember /etc/passwd
	box --in f:/etc/passwd -- /bin/true
	[ "$STATUS" -eq 125 ] || breach "replaced the box's /etc/passwd: $STATUS"
	box --in f:/tmp/d/f -- cat /tmp/d/f
	[ "$OUT" = x ] || breach "an absolute destination: $ERR"
	[ ! -e /tmp/d/f ] || breach 'it went to the host'
	host_unchanged
}

# Links resolve inside the box or not at all.
FI_02() {
	mkdir in && echo host-secret >secret && ln -s "$PWD/secret" in/link && ln -s /etc in/etc
	box --in in:d -- cat d/link
	[[ "$STATUS" -ne 0 && "$OUT$ERR" != *host-secret* ]] || breach "a link led to the host: $OUT"
	box --in in:d --in secret:d/etc/new -- /bin/true
	[ "$STATUS" -eq 125 ] || breach "an input went through a link: $STATUS"
	box_json --out o -- sh -c 'ln -s /etc out'
	[ -z "$(ls -A o)" ] || breach "out was a link, and came out: $(ls -A o)"
	rm -r o
	box_json --out o -- sh -c 'mkdir out; cd out; ln -s /etc/passwd p; ln -s ../../.. up; echo x >f'
	out_only f
	[ "$(json '.refused_outputs | map("\(.path) \(.type)") | sort | join(",")')" = 'p link,up link' ] ||
		breach "refused: $(json .refused_outputs)"
}

# The swappers outlive the command that started them by not an instant.
FI_03() {
	local i

	for ((i = 0; i < 15; i++)); do
		box_json --in "$ATTACKS/attack-FI:attack" --out o -- ./attack FI-03
		[ "$STATUS" -eq 0 ] || breach "status $STATUS: $JSON"
		! grep -rq root: o || breach 'a link was followed'
		[ "$(find o -type l | wc -l)" -eq 0 ] || breach 'a link came out'
		outputs_true
		rm -r o
	done
}

# Nothing is written through a link or over what is there, in the box or on the host.
FI_04() {
	mkdir a b && ln -s /tmp/target a/x && echo x >b/x && ln -s /tmp a/d
	box --in a:t --in b:t -- /bin/true
	[ "$STATUS" -eq 125 ] || breach "a file went over a link: $STATUS"
	mkdir b/d && echo x >b/d/y && rm b/x
	box --in a:t --in b:t -- ls /tmp
	[ "$STATUS" -eq 125 ] || breach "a directory went through a link: $STATUS $OUT"
	mkdir full && echo old >full/f && mkfifo pipe && ln -s full/f l
	for dest in full full/f pipe l /dev/null; do
		box --out "$dest" -- sh -c 'mkdir out; echo new >out/f'
		[ "$STATUS" -eq 2 ] || breach "--out $dest: status $STATUS"
	done
	[ "$(cat full/f)" = old ] || breach 'it wrote over a file of the host'
}

FI_05() {
	attack FI-05 --out o --timeout 20s
	out_only empty file
	rm -r o
	box_json --out o --in "$ATTACKS/attack-FI:attack" -- ./attack FI-05
	[ "$(json '.refused_outputs | map("\(.path) \(.type)") | sort | join(",")')" = \
		'fifo fifo,link link,socket socket' ] || breach "refused: $(json .refused_outputs)"
	mkfifo pipe
	box --in pipe -- /bin/true
	[ "$STATUS" -eq 2 ] || breach "a FIFO went in: $STATUS"
}

FI_06() {
	local target

	for target in /dev /proc/self /proc /sys /etc; do
		rm -rf o
		box_json --out o -- ln -s "$target" out
		[ -z "$(ls -A o)" ] || breach "$target came out: $(ls -A o)"
	done
	for target in /dev/zero /dev/null /dev/tty; do
		box --in "$target" -- /bin/true
		[ "$STATUS" -eq 2 ] || breach "$target went in: $STATUS"
	done
}

# A file that grows, shrinks and grows while it is wanted: what came out is what was measured.
FI_07() {
	local i

	for ((i = 0; i < 5; i++)); do
		rm -rf o
		box_json --out o --timeout 300ms --disk 32M -- sh -c 'mkdir out; cd out
			while :; do head -c 3000000 /dev/zero >>f; : >f; done & while :; do echo x >>g; done'
		[ "$(json .status)" = timeout ] || breach "status $(json .status)"
		outputs_true
	done
}

FI_08() {
	attack FI-08 --out o --disk 16M
	[ "$(find o -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }')" -le $((16 << 20)) ] ||
		breach "$(du -sh --apparent-size o) came out of a box of 16M"
}

# The longest names, as many as the box can hold: bounded in time, in memory and in number.
FI_11() {
	local rss

	"$ATTACKS/attack-AG" host - .rss "$GLOVEBOX" run --json --out o --in "$ATTACKS/attack-FI:attack" \
		-- ./attack FI-11 >.json || [ "$(jq -r .status .json)" = disk_limit ] || breach "$(head -c 999 .json)"
	rss=$(cat .rss)
	[ "$(jq '.refused_outputs | length' .json)" -le 65536 ] || breach 'more names than --files'
	jq -e '.message != ""' .json >/dev/null || breach 'nothing says that something was left out'
	[ "$rss" -lt 100000 ] || breach "the host used $rss KiB for the names of refused files"
	[ "$(stat -c %s .json)" -lt 50000000 ] || breach "the result has $(stat -c %s .json) bytes"
}

# Names are bytes: they go in and come out as they are, and the result names them exactly.
FI_12() {
	local name want

	mkdir in
	for name in $'new\nline' $'\e[2Jescape' $'\u202ertl' $'bad\xff\xfeutf8' ' space ' '-rf' '...' $'\r' \
		$'\u00e9' $'e\u0301' '*' "quote'\""; do
		printf %s "$name" >"in/$name"
	done
	box_json --in in --out o -- cp -r in out
	[ "$STATUS" -eq 0 ] || breach "status $STATUS: $ERR"
	diff -r in o || breach 'names or contents changed on their way'
	want=$(cd in && find . -type f -printf '%P\0' | LC_ALL=C sort -z | od -An -tx1)
	while read -r name; do
		printf '%s\0' "$name"
	done < <(json '.outputs[] | .path_base64 // (.path | @base64)') |
		while IFS= read -r -d '' name; do base64 -d <<<"$name" && printf '\0'; done |
		LC_ALL=C sort -z | od -An -tx1 >.have
	[ "$(cat .have)" = "$want" ] || breach "the result's names differ"
	mkdir links
	ln -s x $'links/\e[2J\a'
	ln -s x $'links/\nglovebox: ok'
	box --in links --out o2 -- cp -rP links out
	grep -q 'not copied out' .err || breach "no note: $(cat -v .err)"
	! grep -q $'[\e\a]' .err || breach "control characters: $(cat -v .err)"
	! grep -q '^glovebox: ok' .err || breach "a forged line: $(cat -v .err)"
}

# Nothing is ever chowned or chmodded on the host: inputs stay as they are, outputs are the caller's.
FI_13() {
	local before

	mkdir in
	echo x >in/f
	chmod 640 in/f
	[ "$(id -u)" -ne 0 ] || chown 12345:12345 in/f
	ln -s /etc/passwd in/l
	before=$(stat -c '%u %g %a %Z' in/f /etc/passwd)
	box_json --in in:w --out o -- sh -c 'mkdir out; cp w/f out/; chmod 6777 out/f; chmod 1777 out
		chmod -R 777 w; chmod 777 /etc/passwd w/l'
	[ "$(stat -c '%u %g %a %Z' in/f /etc/passwd)" = "$before" ] || breach 'a file of the host changed'
	[ "$(stat -c '%u:%g' o/f)" = "$(id -u):$(id -g)" ] || breach "o/f belongs to $(stat -c '%u:%g' o/f)"
	[ -z "$(find o -perm /7000)" ] || breach 'a set-id or sticky bit came out'
}

FI_14() {
	attack FI-14 --out o
	[ ! -e o/whiteout ] || breach 'a device came out'
	[ -z "$(find o -perm /7000)" ] || breach 'a set-id bit came out'
	[ -z "$("$ATTACKS/attack-FI" listxattr o/tool)$("$ATTACKS/attack-FI" listxattr o/dir)" ] ||
		breach 'extended attributes came out'
}

FI_15() {
	attack FI-15 --out o
	[ -z "$(ls -A o)" ] || breach "came out: $(ls -lA o)"
}

# A copy that is cut off, by a limit or by the end of the box, leaves no half a file.
FI_18() {
	box_json --out o --disk 2M -- sh -c 'mkdir out; truncate -s 1500000 out/a out/b out/c'
	[ "$(json '.outputs | length')" -lt 3 ] || breach '4.5 MB came out of a box of 2M'
	outputs_true
	head -c 3000000 /dev/zero >big
	box --in big --disk 1M -- sh -c 'echo started; ls -l big'
	[[ "$STATUS" -eq 125 && -z "$OUT" ]] || breach "it ran with half an input: $STATUS $OUT"
	[[ "$ERR" = *--disk* ]] || breach "does not say what to do: $ERR"
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Requests that make no sense: one line, exit status 2, and nothing was created.

# Runs a command where the directories boxes need are new and empty, and lists what appeared in them.
ARGS_PLACE=(unshare --mount --)
args_elsewhere() {
	if [ "$(id -u)" -eq 0 ]; then
		# shellcheck disable=SC2016 # expanded in there
		"${ARGS_PLACE[@]}" bash -c '
			mount -t tmpfs none /run && mount -t tmpfs none /var/lib || exit 99
			"${@:2}" || rc=$?
			find /run /var/lib -mindepth 1 ! -path "/run/mount*" >"$1"
			exit "${rc:-0}"' - "$TAP_TMP/created" "$@"
	else
		rm -rf "$TAP_TMP/elsewhere"
		mkdir "$TAP_TMP/elsewhere"
		local rc=0
		XDG_RUNTIME_DIR=$TAP_TMP/elsewhere XDG_DATA_HOME=$TAP_TMP/elsewhere "$@" || rc=$?
		find "$TAP_TMP/elsewhere" -mindepth 1 >"$TAP_TMP/created"
		return "$rc"
	fi
}

# bad REGEX ARGS…: refused, with a line that matches.
bad() {
	local want=$1 before name

	shift
	name=$(printf '%q ' "${@:1:5}")
	before=$(find . | LC_ALL=C sort)
	capture args_elsewhere "$GLOVEBOX" run "$@" </dev/null
	[[ $ERR =~ ^glovebox:\ .*$want ]] || ERR="not '$want': $ERR"
	is "status $STATUS, $(wc -l <"$TAP_TMP/err") line, output '$OUT', created '$(cat "$TAP_TMP/created")'" \
		"status 2, 1 line, output '', created ''" "refused: ${name:0:80}"
	if [[ $TAP_LAST -eq 0 && $ERR = not\ * ]]; then
		fail '... but says something else' "$ERR"
	fi
	[ "$before" = "$(find . | LC_ALL=C sort)" ] || fail '... but changed a directory' "$(find .)"
}

# The same place shows a good request making things there: the check above can fail. A box that is made ends those whose
# owner is gone, which by a new lock file are all of them: so not where it would see the boxes of others.
if [ "$(id -u)" -eq 0 ] && [ ! -d /sys/fs/cgroup/memory ] && compgen -G '/sys/fs/cgroup/glovebox/box-*' >/dev/null; then
	skip 'a good request is run' 'others have boxes here, and with cgroup v2 we would end them'
else
	ARGS_PLACE=("$HERE/../crash/alone")
	capture args_elsewhere "$GLOVEBOX" run -- /bin/true </dev/null
	ARGS_PLACE=(unshare --mount --)
	is "$STATUS" 0 'a good request is run'
	isnt "$(grep -c glovebox "$TAP_TMP/created")" 0 '... and creates what a bad one must not'
fi

echo 'print(1)' >code.py
mkdir dir full
echo x >full/file
mkfifo fifo

bad 'nothing to run'
bad 'unknown option --frobnicate' --frobnicate -- /bin/true
bad 'unknown option -x' -x -- /bin/true
bad 'unknown option' --json=yes -- /bin/true
bad '(needs a value|unknown option)' --timeout
bad 'needs a value' -l
bad 'one of' -c 'print(1)' code.py
bad 'one of' -l python -c 'print(1)' -- /bin/true
bad 'one FILE' code.py other.py
bad 'no command' --
bad 'not for a command' -l python -- /bin/true

# Limits that are no number, or one that makes no sense.
for args_limit in timeout cpu-time; do
	for args_value in 0 abc '' -1 1.5s 25h 1d 10S '5 s' 99999999999999999999s; do
		bad "--$args_limit" "--$args_limit" "$args_value" -- /bin/true
	done
done
for args_limit in memory disk; do
	for args_value in 0 1K abc '' -5M 1.5G 4X 900T 99999999999999999999; do
		bad "--$args_limit" "--$args_limit" "$args_value" -- /bin/true
	done
done
for args_value in 0 x '' 1e3 5G; do
	bad '--output' --output "$args_value" -- /bin/true
done
for args_limit in pids files; do
	for args_value in 0 x '' -1 1.5 4294967297 99999999999999999999; do
		bad "--$args_limit" "--$args_limit" "$args_value" -- /bin/true
	done
done
for args_value in 0 x '' -1 0.001 100000 1.; do
	bad '--cpus' --cpus "$args_value" -- /bin/true
done

# Files that are not there, or not what they should be.
bad 'missing.py: No such file' missing.py
bad 'is a directory' -l python dir
bad 'cannot read --in missing' --in missing -- /bin/true
bad 'cannot read --in missing' --in missing:name -- /bin/true
bad 'neither a file nor a directory' --in fifo -- /bin/true
bad 'neither a file nor a directory' --in /dev/null -- /bin/true
bad 'cannot read --stdin missing' --stdin missing -- /bin/true
bad '--stdin dir is a directory' --stdin dir -- /bin/true
bad 'no template .nowhere' -t nowhere -- /bin/true
bad 'No such file' -t ./nowhere -- /bin/true
bad 'not a directory' -t ./code.py -- /bin/true
bad 'not empty' --out full -- /bin/true
bad '--out code.py' --out code.py -- /bin/true
bad '--out missing/dir: No such file' --out missing/dir -- /bin/true
bad '--out' --out '' -- /bin/true
bad 'NAME=VALUE' --env NAME -- /bin/true
bad 'NAME=VALUE' --env =value -- /bin/true
for args_value in .. . ../x a/../b ./x /tmp/../x; do
	bad 'destination' --in "code.py:$args_value" -- /bin/true
done
bad '64 KiB' -- /bin/echo "$(head -c 70000 /dev/zero | tr '\0' x)"
bad '64 KiB' --env "X=$(head -c 70000 /dev/zero | tr '\0' x)" -- /bin/true
bad 'both the code' -l python --stdin - -
# A name that would be two lines is still told in one.
bad 'No such file' --in $'no\nsuch' -- /bin/true
bad 'No such file' $'no\nsuch.py'
bad 'no template' -t $'no\nsuch' -- /bin/true

# Code that cannot be run.
bad 'which language' -c 'print(1)'
bad 'unknown language "klingon"' -l klingon -c 'print(1)'
bad 'language' -l ../../etc/passwd -c x
bad 'language' -l '' -c x
cp code.py code.klingon
bad 'code.klingon' code.klingon
head -c 1048577 /dev/zero | tr '\0' '#' >large.py
bad 'larger than 1024 KiB' large.py
printf 'print("\xff\xfe")' >invalid.py
bad 'UTF-8' invalid.py
printf 'print(1)\0' >nul.py
bad 'NUL' nul.py
bad 'UTF-8' -l python -c $'print("\xc3")'

# Unreadable files: root can read everything, so somebody else asks.
if [ "$(id -u)" -eq 0 ]; then
	install_glovebox copy/bin
	cp -r "$GLOVEBOX_LANGUAGES" languages
	echo secret >unreadable.py
	mkdir -m 700 closed
	chmod 600 unreadable.py
	for args_value in '--in unreadable.py -- /bin/true' '--in closed -- /bin/true' unreadable.py \
		'--stdin unreadable.py -- /bin/true' '--out closed -- /bin/true' '--out new -- /bin/true'; do
		read -r -a args_words <<<"$args_value"
		capture setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent \
			GLOVEBOX_LANGUAGES=languages copy/bin/glovebox run "${args_words[@]}" </dev/null
		is "$STATUS $(wc -l <"$TAP_TMP/err") $(ls -A closed)" '2 1 ' "not ours to read or write: $args_value"
		like "$ERR" 'Permission denied' '... and says why'
	done
	rm -rf copy languages /tmp/glovebox-65534
else
	skip 'unreadable files' 'needs root to be somebody else'
fi

# The verbs themselves.
capture "$GLOVEBOX"
is "$STATUS $OUT" '2 ' 'no verb at all'
capture "$GLOVEBOX" explode
is "$STATUS $(wc -l <"$TAP_TMP/err")" '2 1' 'a verb that does not exist'
for args_value in help --help -h; do
	capture "$GLOVEBOX" "$args_value"
	is "$STATUS" 0 "glovebox $args_value"
	like "$OUT" 'Usage: glovebox VERB' '... says how it is used'
done
capture "$GLOVEBOX" version
like "$STATUS $OUT" '^0 glovebox [0-9]+\.[0-9]+\.[0-9]+' 'glovebox version'
is "$("$GLOVEBOX" --version)" "$OUT" '... and --version is the same'
capture "$GLOVEBOX" version extra
is "$STATUS" 2 '... and takes nothing'

# Every option that --help names exists, and the other way round.
capture "$GLOVEBOX" run --help
is "$STATUS" 0 'glovebox run --help'
args_named=$(grep -oE -- '--[a-z][a-z-]+' <<<"$OUT" | sort -u)
for args_value in language code template stdin in out env timeout cpu-time cpus memory disk files pids output \
	json raw verbose; do
	grep -qx -- "--$args_value" <<<"$args_named" || fail "--help does not name --$args_value"
done
for args_value in $args_named; do
	capture "$GLOVEBOX" run "$args_value" </dev/null
	unlike "$ERR" 'unknown option' "$args_value exists"
done

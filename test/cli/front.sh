# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# The program that people start does plain runs itself, and becomes the whole program for everything else.

if [ ! -x "$(dirname -- "$GLOVEBOX")/../all_verbs/glovebox" ]; then
	skip 'the front' 'this build has none: glovebox is one program'
	return 0
fi
box -- /bin/true # from now on there is a root to start from
install -D -m 755 -t front/bin "$GLOVEBOX"

# front ARGS…: a copy with nothing beside it; sets OUT, ERR, STATUS.
front() {
	capture front/bin/glovebox "$@" </dev/null
}

# by_itself WANT NAME ARGS…: a run that needs nobody else, and what it prints.
by_itself() {
	front run "${@:3}"
	is "$STATUS $OUT" "0 $1" "plain: $2"
	[ "$TAP_LAST" -eq 0 ] || diag "$ERR"
}

# --- what is plain -----------------------------------------------------------------------------------------

front_python=$(command -v python3 || true)
echo 'echo "$0"; cat' >script.sh
echo some text >text
by_itself hi 'a command' -- echo hi
by_itself hi 'limits' --timeout 5s --cpu-time 5s --cpus 0.5 --memory 64M --disk 8M --files 100 --pids 8 --output 1K -- echo hi
by_itself 'some text' 'inputs' --in text -- cat text
by_itself 'some text' 'standard input' --stdin text -- cat
by_itself v 'a variable' --env A=v -- sh -c 'echo "$A"'
by_itself hi 'where and how it is shown' --local --raw --no-zygote -t base -- echo hi
by_itself 42 'code' -l bash -c 'echo $((6 * 7))'
by_itself $'main.sh\nsome text' 'a file, and an option behind it' script.sh --stdin text
capture front/bin/glovebox run -l bash - <<<'echo from standard input'
is "$STATUS $OUT" '0 from standard input' 'plain: code from standard input'
if [ -n "$front_python" ]; then
	by_itself 42 'Python' -l python -c 'print(6 * 7)'
fi
if command -v gcc >/dev/null; then
	by_itself compiled 'a language that is compiled' -l c -c '#include <stdio.h>
int main(void) { puts("compiled"); }'
fi
front run -v -- sh -c 'exit 3'
like "$STATUS $ERR" '^3 glovebox: error after .*user ids' 'plain: -v'
front run --in nowhere -- true
is "$STATUS $ERR" '2 glovebox: cannot read --in nowhere: No such file or directory' 'plain: what cannot be opened'

# Whoever makes the first box on a machine sets the weight of all that follow.
front_cpu=/sys/fs/cgroup/cpu/cli-test-$$
if [ "$(id -u)" -eq 0 ] && [ -d /sys/fs/cgroup/cpu ] && mkdir "$front_cpu"; then
	capture unshare --mount bash -c 'mount --bind "$1" /sys/fs/cgroup/cpu && taskset -c 0 front/bin/glovebox run -- true' - "$front_cpu"
	is "$STATUS $(cat "$front_cpu/glovebox/cpu.shares")" "0 $((2048 * $(getconf _NPROCESSORS_ONLN)))" \
		'all boxes weigh as much as the machine has CPUs, not as the first one could use'
	rmdir "$front_cpu/glovebox" "$front_cpu"
else
	skip 'the weight of all boxes' 'needs root and cgroup v1'
fi

# --- what is not -------------------------------------------------------------------------------------------

front version
if [ "$STATUS" -eq 0 ]; then
	skip 'without the whole program' 'one is installed here'
else
	echo for nobody >--
	for front_value in version help --help doctor languages 'run --help' run 'run --json -- true' 'run --out new -- true' \
		'run --allow host.example -- true' 'run --net none -- true' 'run --learn-to new -- true' 'run --service -- true' \
		'run -t nothing -- true' 'run --what -- true' 'run --memory -- true' 'run --memory x -- true' 'run text text' \
		'run --stdin -- true' 'run --in -- true' 'run text --stdin -- true'; do
		read -r -a front_words <<<"$front_value"
		front "${front_words[@]}"
		like "$STATUS ${ERR:-} $OUT" '^125 glovebox: cannot start /[^ ]*/libexec/glovebox/glovebox, .*: No such file or directory $' \
			"not plain: $front_value"
	done
	is "$(find . -name 'new*')" '' '... and nothing was made'

	rm ./--

	# One that somebody else could have put there.
	mkdir -p front/all_verbs
	printf '#!/bin/sh\necho planted\n' >front/all_verbs/glovebox
	chmod 755 front/all_verbs/glovebox
	chmod 777 front/all_verbs
	front version
	is "$STATUS $OUT" '125 ' 'a neighbour that anybody can write to is not started'
	if [ "$(id -u)" -eq 0 ]; then
		chmod 755 front/all_verbs
		chown 65534 front/all_verbs
		front version
		is "$STATUS $OUT" '125 ' '... nor one of another user'
		chown 0 front/all_verbs
		mv front/all_verbs front/elsewhere
		ln -s elsewhere front/all_verbs
		chown -h 65534 front/all_verbs
		front version
		is "$STATUS $OUT" '125 ' '... nor one that a link of his leads to'
		rm front/all_verbs
		mv front/elsewhere front/all_verbs
		chown 65534 front
		front version
		is "$STATUS $OUT" '125 ' '... nor one that he could put another in the place of'
		chown 0 front
	fi
	chmod 755 front/all_verbs
	chmod 777 front
	front version
	is "$STATUS $OUT" '125 ' '... nor one in whose place anybody could'
	chmod 755 front
	chmod 775 front/all_verbs
	front version
	is "$STATUS $OUT" '125 ' '... nor one that a group could change which cannot change us'
	chmod 775 front front/bin
	front version
	is "$STATUS $OUT" '0 planted' '... but one that the same could as can change us'
	chmod 755 front front/bin front/all_verbs
fi

# --- what it hands over ------------------------------------------------------------------------------------

mkdir -p front/all_verbs
cat >front/all_verbs/glovebox <<'END'
#!/bin/sh
printf '<%s>' "$@"
[ "$1" = run ] && cat
printf '%s' "$FRONT_TEST"
END
chmod 755 front/all_verbs front/all_verbs/glovebox
capture env FRONT_TEST=kept front/bin/glovebox run text --json --in=text -v - x -- --json a <<<'its input'
is "$STATUS $OUT" $'0 <run><text><--json><--in=text><-v><-><x><--><--json><a>its input\nkept' \
	'the whole program gets arguments, environment and standard input as they were'
front
is "$STATUS $OUT" '0 <>' '... also when there are none'
front run -- echo --json
is "$STATUS $OUT" '0 --json' 'what stands behind -- is no option'

# Which of the two an ordinary user gets does not need a box that works.
if [ "$(id -u)" -eq 0 ]; then
	mkdir -p runtime/glovebox
	# front_user ARGS…: as somebody who could use a service, if there were word of one.
	front_user() {
		capture setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent \
			XDG_RUNTIME_DIR="$PWD/runtime" front/bin/glovebox run "$@" </dev/null
	}
	if [ -e /run/glovebox/service.json ]; then
		skip 'an ordinary user without a service' 'one is running here'
	else
		front_user -t / --timeout 1s -- true
		# Another suite's service may have come meanwhile.
		[ -e /run/glovebox/service.json ] || is "$OUT" '' 'an ordinary user, where there is no service: plain'
	fi
	front_user -- true
	is "$OUT" '<run><--><true>' 'a root that is still to be made: not plain'
	echo '{}' >runtime/glovebox/service.json
	front_user -t / --timeout 1s -- true
	is "$OUT" '<run><-t></><--timeout><1s><--><true>' 'an ordinary user, where there may be a service: not plain'
	front_user --local -t / --timeout 1s -- true
	is "$OUT" '' '... unless he says --local'
	rm -rf /tmp/glovebox-65534
else
	skip 'an ordinary user' 'needs root to be somebody else'
fi

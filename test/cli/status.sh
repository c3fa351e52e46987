# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# How a run ended: the exit status for shells, the status for programs. The second is never guessed from the
# first.

# ends EXIT STATUS NAME ARGS…: with and without --json.
ends() {
	local exit=$1 want=$2 name=$3

	shift 3
	box "$@"
	is "$STATUS" "$exit" "$name: exit status $exit"
	box_json "$@"
	is "$STATUS $(json .status)" "$exit $want" "$name: $want"
	[ "$TAP_LAST" -eq 0 ] || diag "$(json '.message, .stderr')"
}

for status_n in 0 1 2 3 42 77 255; do
	box -- sh -c "exit $status_n"
	is "$STATUS" "$status_n" "the program's own status $status_n"
done
ends 0 ok 'true' -- /bin/true
is "$(json '[.exit_code, .signal, .truncated, .message, .step] | tostring')" '[0,null,false,"","run"]' \
	'... and nothing else to say'
ends 1 error 'false' -- /bin/false
is "$(json '[.exit_code, .signal] | tostring')" '[1,null]' '... with its exit code'

# Numbers that mean something when they are ours mean nothing when they are the program's.
for status_n in 2 124 125 126 127 137 143 139; do
	ends "$status_n" error "the program itself says $status_n" -- sh -c "exit $status_n"
	is "$(json .exit_code)" "$status_n" '... and the exit code is its own'
done

ends 127 error 'a command that is not there' -- no-such-command
like "$(json .message)" 'no-such-command: not found' '... is named'
ends 127 error 'a path that is not there' -- ./no/such
ends 126 error 'a directory' -- /usr
echo 'not a program' >text
ends 126 error 'a file that is not executable' --in text -- ./text
printf '#!/no/such/interpreter\n' >script
chmod 755 script
ends 127 error 'a script whose interpreter is not there' --in script -- ./script

ends 143 signal 'SIGTERM' -- sh -c 'kill -TERM $$'
is "$(json '[.exit_code, .signal] | tostring')" '[null,15]' '... with its number'
ends 137 signal 'SIGKILL by its own hand is no memory limit' -- sh -c 'kill -KILL $$'
ends 139 signal 'SIGSEGV' -- sh -c 'kill -SEGV $$'
ends 134 signal 'SIGABRT' -- sh -c 'kill -ABRT $$'
box -- sh -c 'kill -SEGV $$'
is "$(find . -name 'core*')" '' '... leaves no core'

ends 124 timeout 'sleeping past the time-out' --timeout 200ms -- sleep 60
like "$(json .message)" '--timeout' '... and says which limit'
ends 124 timeout 'a program that ignores every signal' --timeout 200ms -- \
	sh -c 'trap "" INT TERM HUP QUIT; while :; do sleep 1; done'
ends 124 timeout 'a grandchild that left its session' --timeout 300ms -- \
	sh -c 'setsid sh -c "trap \"\" TERM; sleep 60" & sleep 60'
ends 0 ok 'a grandchild that stays behind does not keep the run' -- sh -c 'setsid sleep 60 & exit 0'
ends 125 setup_error 'an input that cannot go where it should' --in text:/etc/passwd -- /bin/true
like "$(json .message)" '/etc/passwd' '... is named'
is "$(json '[.exit_code, .signal] | tostring')" '[null,null]' '... and there is no exit code'
mkdir empty
ends 127 error 'a template with nothing in it' -t ./empty -- /bin/true
if [ "$(id -u)" -eq 0 ]; then
	# What the host mounted over is not seen in a box of its own root; where the box's user writes stays his.
	mkdir -p covered/secret
	capture unshare --mount sh -c 'mount -t tmpfs none /home && mount -t tmpfs none covered &&
		exec "$0" run -t / -- sh -c "touch f && pwd && ls -A $PWD/covered"' "$GLOVEBOX"
	is "$STATUS $OUT" '0 /home/user' 'the host itself as a template, with mounts in it'
fi

if [ "$(id -u)" -eq 0 ]; then
	ends 124 cpu_limit 'computing past the CPU time' --cpu-time 300ms --timeout 30s -- sh -c 'while :; do :; done'
	like "$(json .message)" '--cpu-time' '... and says which limit'
	ends 137 memory_limit 'eating memory' --memory 32M --disk 1M -- \
		sh -c 'head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null; sleep 30'
	is "$(json .message)" 'it used more memory than its limit, 32 MiB; raise --memory if it needs more' '... and says which limit'
	ends 137 pids_limit 'forking' --pids 8 -- sh -c 'i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; wait'
	like "$(json .message)" '--pids' '... and says which limit'
	status_three=(sh -c 'sleep 2 & sleep 2 & wait')
	ends 0 ok 'as many processes as there may be' --pids 3 -- "${status_three[@]}"
	is "$(json .usage.processes_peak)" 3 '... which are counted'
	ends 137 pids_limit 'one more' --pids 2 -- "${status_three[@]}"
	# Whoever put the files there has gone before the program comes: it takes no place of the program's.
	for status_n in $(seq 20); do
		box --pids 1 -l bash -c 'echo hi'
		[ "$STATUS $OUT" = '0 hi' ] || break
		box --pids 1 --in text --in script -- /bin/cat text
		[ "$STATUS $OUT" = '0 not a program' ] || break
	done
	is "$STATUS $OUT $status_n" '0 not a program 20' 'one process, with code and with inputs'
	[ "$TAP_LAST" -eq 0 ] || diag "$ERR"
else
	skip 'CPU, memory and process limits' 'an ordinary user may have no cgroups'
fi
ends 137 disk_limit 'filling the disk' --disk 1M -- sh -c 'cat /dev/zero >a; sleep 30'
like "$(json .message)" '--disk' '... and says which limit'
ends 137 disk_limit 'many files' --files 200 -- sh -c 'i=0; while [ $i -lt 900 ]; do : >$i; i=$((i+1)); done; sleep 30'
like "$(json .message)" '--files' '... and says which limit'
ends 137 output_limit 'printing too much' --output 1K -- sh -c 'yes'
like "$(json .message)" '--output' '... and says which limit'
is "$(json '[.truncated, (.stdout | length)] | tostring')" '[true,1024]' '... and gives what fits'
ends 137 output_limit 'printing too much, on both' --output 1K -- sh -c 'yes >&2 & yes'
is "$(json '[.truncated, (.stdout + .stderr | length)] | tostring')" '[true,1024]' '... both together'
ends 0 ok 'printing just as much' --output 1K -- head -c 1024 /dev/zero
is "$(json .truncated)" false '... is not too much'

# A template is a root directory of one's own: nothing of the host has to be in it.
if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
	mkdir -p root/bin
	cp "$(command -v busybox)" root/bin/busybox
	ln -s busybox root/bin/sh
	ends 0 ok 'a template with busybox and nothing else' -t ./root -- /bin/sh -c 'echo "$0" works; echo x >/tmp/x'
	is "$(json .stdout)" '/bin/sh works' '... runs'
	is "$(find root | LC_ALL=C sort | tr '\n' ' ')" 'root root/bin root/bin/busybox root/bin/sh ' '... and stays as it is'
else
	skip 'a template with busybox and nothing else' 'no static busybox'
fi

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# shellcheck disable=SC2016 # what is in single quotes is for a shell in a box
#
# The result as one JSON object: what it has, and that it is true.

box_json -- /bin/true
ok 'one JSON object and nothing else' jq -es 'length == 1 and (.[0] | type == "object")' "$TAP_TMP/out"
is "$ERR" '' '... and nothing on standard error'
is "$(json '["status", "exit_code", "signal", "stdout", "stderr", "truncated", "usage", "limits", "outputs",
	"isolation"] - keys | join(" ")')" '' 'every field it promises'
is "$(json '[.status, .exit_code, .stdout, .truncated, .usage, .limits, .outputs, .isolation | type] | join(" ")')" \
	'string number string boolean object object array object' '... of its type'
is "$(json '["wall_ms", "cpu_user_ms", "cpu_system_ms", "memory_peak_bytes", "processes_peak", "read_bytes",
	"written_bytes"] - (.usage | keys) | join(" ")')" '' 'everything that is measured'
is "$(json '[.usage[] | select(type != "number" or . < 0)] | length')" 0 '... is a number'

# The limits are those that were asked for.
box_json --timeout 7s --cpu-time 3s --cpus 0.5 --memory 64M --disk 32M --files 1000 --pids 20 --output 2M -- /bin/true
is "$(json -S -c .limits)" "$(jq -S -c . <<<'{"timeout_ms": 7000.0, "cpu_time_ms": 3000.0, "cpus": 0.5,
	"memory_bytes": 67108864, "disk_bytes": 33554432, "files": 1000, "pids": 20, "output_bytes": 2097152}')" \
	'the limits are those asked for'
box_json -- /bin/true
is "$(json '[.limits | .timeout_ms, .cpu_time_ms, .cpus, .memory_bytes, .disk_bytes, .files, .pids, .output_bytes] | map(floor) | tostring')" \
	'[30000,10000,1,268435456,268435456,65536,64,1048576]' '... or those --help names'

# What was used is what was used.
# Its clock starts when we hear that it started, which is a little later than it did.
box_json -- sleep 2
is "$(json '.usage.wall_ms >= 500 and .usage.wall_ms < 20000')" true 'wall time'
box_json --disk 8M -- sh -c 'head -c 3000000 /dev/zero >f; cat f f >/dev/null'
is "$(json '.usage.read_bytes >= 6000000 and .usage.written_bytes >= 3000000')" true 'bytes read and written'
if [ "$(json .isolation.cgroup.memory)" = true ]; then
	box_json -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'
	is "$(json '.usage | .cpu_user_ms + .cpu_system_ms > 20')" true 'CPU time'
	box_json -- sh -c 'head -c 60000000 /dev/zero | tail -c 60000000 | wc -c'
	is "$(json '.usage.memory_peak_bytes > 60000000 and .usage.memory_peak_bytes < 300000000')" true 'peak memory'
	box_json -- sh -c 'sleep 2 & sleep 2 & sleep 2 & wait'
	is "$(json '.usage.processes_peak >= 4 and .usage.processes_peak < 20')" true 'peak processes'
else
	skip 'CPU time, memory and processes' 'no cgroups here'
fi

# The protections that were on.
is "$(json '.isolation.namespaces | contains(["user", "mount", "pid", "net", "ipc", "uts"])')" true 'namespaces'
is "$(json '[.isolation | .no_new_privs, .seccomp, .network, (.capabilities | length)] | tostring')" \
	'[true,true,"none",0]' 'no_new_privs, seccomp, no network, no capabilities'
is "$(json '.isolation.user_ids | IN("range", "subids", "single")')" true 'user ids'
is "$(json '.isolation.cgroup.mode | IN("v1", "v2", "hybrid", "none", "unified")')" true 'cgroup mode'
box -- sh -c 'grep -E "^(NoNewPrivs|Seccomp|CapEff):" /proc/self/status; ls /sys/class/net 2>/dev/null; id -u'
is "$OUT" $'CapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n1000' '... and so it is inside'

# What a program prints is text where it is text, and exact where it is not.
box_json -- printf 'a\001\033"\\\n\303\251\360\237\230\200'
is "$(json .stdout | od -An -tx1 | tr -d ' \n')" '61011b225c0ac3a9f09f98800a' 'control characters and Unicode'
is "$(json 'has("stdout_base64")')" false '... as they are'
is "$(grep -c $'\033' "$TAP_TMP/out")" 0 '... but never raw'
box_json -- printf 'a\377\000b'
is "$(json .stdout_base64 | base64 -d | od -An -tx1 | tr -d ' \n')" 61ff0062 'bytes that are no text are in base64'
is "$(json '.stdout | startswith("a\ufffd")')" true '... and shown with U+FFFD'

# -v says on standard error what was used; standard output stays the program's.
box -v -- echo hello
is "$OUT" hello 'with -v the output is the same'
like "$ERR" 'glovebox: ok after .*user ids' '... and standard error tells more'
box --verbose -- echo hello
like "$ERR" 'glovebox: ok after' '... with --verbose too'

# A result that cannot be written is a failure.
if [ -e /dev/full ]; then
	"$GLOVEBOX" run --json -- /bin/true >/dev/full 2>/dev/null </dev/null && json_rc=0 || json_rc=$?
	is "$json_rc" 125 'a result that cannot be written'
fi

# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the guest after checks.sh: real boxes against the cgroups that are mounted here.

test_cgroup >/tmp/unit 2>&1
check 'the drivers pass their unit tests' "$? $(grep '^not ok' /tmp/unit)" '0 '

box -- true
check 'a box runs' "$status" ok
check 'it knows the layout' "$mode" "$layout"

cat /sys/fs/cgroup/glovebox/memory.max /sys/fs/cgroup/memory/glovebox/memory.limit_in_bytes >/tmp/all 2>/dev/null
check 'all boxes together are capped in memory' "$(awk '$1 > 0 && $1 < 1e12' /tmp/all | wc -l)" 1
cat /sys/fs/cgroup/glovebox/pids.max /sys/fs/cgroup/pids/glovebox/pids.max >/tmp/all 2>/dev/null
check 'and in processes' "$(grep -c '^[0-9]' /tmp/all)" 1

# shellcheck disable=SC2016  # for the shell in the box
box --memory 32M -- sh -c 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done'
check 'a memory bomb meets its limit' "$status" memory_limit

box --pids 20 --timeout 60s -- sh -c 'bomb() { bomb | bomb & }; bomb; sleep 100'
check 'a fork bomb meets its limit' "$status" pids_limit

box --cpu-time 1s --timeout 60s -- sh -c 'while :; do :; done'
check 'a busy loop meets its limit' "$status" cpu_limit

box --timeout 2s -- sh -c 'setsid sleep 4321 & (trap "" TERM; sleep 4321) & sleep 4321'
check 'time runs out' "$status" timeout
sleep 4321 & # ours, to see that we would see the others
while [ "$(processes_with '[s]leep 4321')" = 0 ]; do :; done
check 'and daemons with it' "$(processes_with '[s]leep 4321')" 1

check 'no cgroup is left' "$(leftovers)" ''

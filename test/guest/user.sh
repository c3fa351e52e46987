# shellcheck shell=sh disable=SC2154,SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the guest after checks.sh: boxes of an ordinary user with cgroups that were delegated to him,
# as systemd does. $node is the cgroup the user is in.
echo 'user:200000:65536' >/etc/subuid
cp /etc/subuid /etc/subgid
chown 0:0 /usr/bin/newuidmap /usr/bin/newgidmap
chmod u+s /usr/bin/newuidmap /usr/bin/newgidmap
mkdir -p /run/user/1000
chown 1000:1000 /run/user/1000
echo '+memory +pids +cpu' >/sys/fs/cgroup/cgroup.subtree_control

# delegate DIRECTORY...
delegate() {
	for dir in "$@"; do
		mkdir -p "$dir"
		chown 1000:1000 "$dir" "$dir/cgroup.procs" "$dir/cgroup.subtree_control"
	done
}

# busybox has a setpriv of its own that cannot do this: hence the path.
as_user() {
	(
		echo 0 >"$node/cgroup.procs" || exit 99
		export HOME=/tmp XDG_RUNTIME_DIR=/run/user/1000
		cd /tmp && exec /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
	)
}

runner=as_user
node=/sys/fs/cgroup/alone
delegate $node
box -- true
check 'alone in a cgroup, a user can run a box' "$status" ok
check 'with v2 limits' "$mode" v2

node=/sys/fs/cgroup/alone-too # from the first we stepped aside: nobody can enter that any more
delegate $node
# shellcheck disable=SC2016  # for the shell in the box
box --memory 32M -- sh -c 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done'
check 'a memory bomb meets its limit' "$status" memory_limit

node=/sys/fs/cgroup/slice/shell
delegate /sys/fs/cgroup/slice $node
sleep 4321 &
echo $! >$node/cgroup.procs
box --pids 20 --timeout 60s -- sh -c 'bomb() { bomb | bomb & }; bomb; sleep 100'
check 'with others in it, the cgroup above serves' "$status" pids_limit

node=/sys/fs/cgroup
box --memory 32M -- true
check 'where nothing was delegated there are no limits to be had' "$mode" none

check 'no cgroup is left' "$(leftovers)" ''

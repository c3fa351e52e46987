# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# FD: descriptors, environments and our own programs.

# Whoever calls glovebox may have left descriptors open: a directory, a file to write, a secret.
FD_01() {
	echo input >input
	echo x >writable
	attack FD-01 --env STDIN_IS=/dev/null 7</ 8<>writable 200</etc/shadow
	attack FD-01 --env STDIN_IS=pipe: --stdin input 7</ 8<>writable 200</etc/shadow
	[ "$(cat writable)" = x ] || breach 'the open file was written to'
}

# fd_kinds PID: each descriptor as "NUMBER KIND", where a unix socket of packets without a name is "packets".
fd_kinds() {
	local fd target

	for fd in "/proc/$1/fd"/*; do
		target=$(readlink "$fd") || continue
		case $target in
		socket:*)
			target=${target#socket:[}
			# Flags, type and state come before the inode; a name would come after it.
			if awk -v inode="${target%]}" '$7 == inode && $5 == "0005" && NF == 7 { found = 1 }
				END { exit !found }' /proc/net/unix; then
				target=packets
			fi
			;;
		pipe:*) target=pipe ;;
		esac
		printf '%s %s\n' "${fd##*/}" "$target"
	done
}

# A view of the box's processes and of nothing else, through which nothing can be changed.
only_processes() {
	[ "$(stat -fLc %T "$1")" = proc ] || breach "$1 is not a view of processes"
	[ -d "$1/1" ] || breach "$1 shows no process"
	[ ! -e "$1/sys" ] || breach "$1 shows more than processes"
	if (echo 0 >"$1/1/oom_score_adj") 2>/dev/null; then breach "$1 can be written to"; fi
}

# What the agent and its keeper may hold while one command runs; anything else needs a reason and a line.
FD_02() {
	local fd kind flags

	need_root
	hold_box FD-02 7</ 200</etc/shadow
	fd_kinds "$BOX_INIT" >agent
	fd_kinds "$BG" >keeper
	echo 'agent:' && cat agent
	while read -r fd kind; do
		case $fd:$kind in
		[0-2]:/dev/null) ;;              # it reads and prints nothing
		3:packets) ;;                    # control
		4:/) only_processes "/proc/$BOX_INIT/fd/4" ;;
		[0-9]*:packets) ;;               # the command
		[0-9]*:pipe) ;;                  # the command's input and output
		[0-9]*:'anon_inode:[signalfd]') ;; # the ends of processes
		*) breach "the agent holds $fd, $kind" ;;
		esac
	done <agent
	[ "$(grep -c packets agent)" -eq 2 ] || breach 'the agent holds more sockets than two'
	[ "$(grep -c pipe agent)" -le 4 ] || breach 'the agent holds more pipes than four'
	echo 'keeper:' && cat keeper
	while read -r fd kind; do
		[ "$fd" -gt 2 ] || continue
		# The caller's own, which it did not close.
		[ "$(readlink "/proc/$BG/fd/$fd")" != "$(readlink "/proc/$BASHPID/fd/$fd")" ] || continue
		flags=$(awk '$1 == "flags:" { print $2 }' "/proc/$BG/fdinfo/$fd")
		case $fd:$kind in
		7:/ | 200:/etc/shadow) continue ;; # the caller left these open
		*:packets) ;;                      # control and the command
		*:/dev/null) ;;
		*:'/memfd:glovebox-agent (deleted)') ;;
		*:/run/glovebox/boxes) ;;
		*:/sys/fs/cgroup/*) ;;
		*:'anon_inode:[pidfd]' | *:'anon_inode:[signalfd]') ;;
		*:"$ATTACKS"/attack-FD | *:"$ROW_TMP/.hold") ;; # the inputs
		# The box's writable layer, to ask how full it is: as a mere reference (O_PATH) only.
		*:/) [ $((8#$flags & 8#10000000)) -ne 0 ] || breach "keeper: $fd opens the box's files" ;;
		*) breach "the keeper holds $fd, $kind" ;;
		esac
		[ $((8#$flags & 8#2000000)) -ne 0 ] || breach "the keeper's $fd, $kind, survives an exec"
	done <keeper
	let_go
}

FD_03() { attack FD-03; }

# Nobody is in any of the box's namespaces who is not the agent's child: no helper ever joins.
FD_04() {
	local kind inode pid parent

	need_root
	hold_box FD-04
	for kind in pid mnt user net ipc uts; do
		inode=$(stat -L -c %i "/proc/$BOX_INIT/ns/$kind")
		for pid in /proc/[0-9]*; do
			pid=${pid#/proc/}
			[ "$(stat -L -c %i "/proc/$pid/ns/$kind" 2>/dev/null)" = "$inode" ] || continue
			parent=$pid
			while [ "$parent" -gt 1 ] && [ "$parent" != "$BOX_INIT" ]; do
				parent=$(awk '$1 == "PPid:" { print $2 }' "/proc/$parent/status" 2>/dev/null)
				parent=${parent:-0}
			done
			[ "$parent" = "$BOX_INIT" ] || breach "process $pid of the host is in the box's $kind namespace"
		done
	done
	let_go
}

FD_05() {
	local before log

	exec {log}>>log
	before=$(grep flags "/proc/self/fdinfo/$log")
	STATUS=0
	"$GLOVEBOX" run --stdin /dev/zero --in "$ATTACKS/attack-FD:attack" -- ./attack FD-05 1>&"$log" 2>err ||
		STATUS=$?
	[ "$STATUS" -eq 0 ] || breach "status $STATUS: $(cat err)"
	[ "$(wc -c <log)" -eq 409600 ] || breach "$(wc -c <log) bytes of 409600 arrived"
	[ "$(grep flags "/proc/self/fdinfo/$log")" = "$before" ] || breach "the caller's descriptor changed"
	box -- /bin/echo fine
	[ "$OUT" = fine ] || breach 'the next box does not run'
}

FD_06() {
	local agent keeper

	need_root
	hold_box FD-06
	agent=$(find "/proc/$BOX_INIT/fd" -mindepth 1 | wc -l)
	keeper=$(find "/proc/$BG/fd" -mindepth 1 | wc -l)
	echo "agent $agent, keeper $keeper"
	[ "$agent" -le 12 ] || breach "the agent holds $agent descriptors"
	[ "$keeper" -le 64 ] || breach "the keeper holds $keeper descriptors"
	let_go
}

FD_07() {
	local pid

	need_root
	hold_box FD-07 --env LD_PRELOAD=/home/user/evil.so --env LD_LIBRARY_PATH=/home/user/lib \
		--env GCONV_PATH=/home/user/gconv --env LD_AUDIT=/home/user/audit.so
	[ -z "$(tr -d '\0' <"/proc/$BOX_INIT/environ")" ] || breach 'the agent has an environment'
	if grep -aE 'LD_PRELOAD|LD_LIBRARY_PATH|GCONV_PATH|LD_AUDIT' "/proc/$BG/environ"; then
		breach "the request's variables are in the keeper"
	fi
	for pid in $BG $BOX_INIT; do
		if grep -E '/home/user|evil\.so' "/proc/$pid/maps"; then
			breach "process $pid has loaded the box's code"
		fi
	done
	let_go
}

# A template whose loaders, libraries and name services are all ours, in place of what a helper would load.
FD_08() {
	local name

	need_root
	template tpl
	mkdir -p tpl/lib/x86_64-linux-gnu tpl/lib64 tpl/usr/lib tpl/etc
	for name in lib/ld-musl-x86_64.so.1 lib64/ld-linux-x86-64.so.2 lib/ld-linux-aarch64.so.1 \
		lib/ld-musl-aarch64.so.1 lib/x86_64-linux-gnu/libc.so.6 lib/x86_64-linux-gnu/libnss_files.so.2 \
		lib/libnss_evil.so.2 usr/lib/libc.so; do
		cp "$ATTACKS/attack-FD" "tpl/$name"
	done
	touch tpl/false-agent
	echo 'passwd: evil' >tpl/etc/nsswitch.conf
	echo /lib/libnss_evil.so.2 >tpl/etc/ld.so.preload
	echo 'root:x:0:0::/:/lib/libc.so' >tpl/etc/passwd
	hold_box FD-08 -t "$PWD/tpl"
	cat "/proc/$BOX_INIT/maps"
	if awk '$6 ~ /^\// && $6 != "/memfd:glovebox-agent" { print; found = 1 } END { exit !found }' \
		"/proc/$BOX_INIT/maps"; then
		breach 'the agent has a file of the box mapped'
	fi
	if grep -E 'libnss_evil|tpl/' "/proc/$BG/maps"; then
		breach 'the keeper has a file of the template mapped'
	fi
	let_go
}

FD_09() {
	local name

	need_root
	template tpl
	mkdir -p tpl/sbin tpl/bin tpl/usr/bin tpl/usr/lib/glovebox tpl/lib/systemd
	for name in sbin/init init bin/init glovebox-agent usr/bin/glovebox-agent bin/glovebox-agent bin/sh \
		usr/lib/glovebox/agent usr/bin/glovebox lib/systemd/systemd; do
		cp "$ATTACKS/attack-FD" "tpl/$name"
	done
	touch tpl/false-agent
	hold_box FD-09 -t "$PWD/tpl"
	[ "$(readlink "/proc/$BOX_INIT/exe")" = '/memfd:glovebox-agent (deleted)' ] ||
		breach "the agent is $(readlink "/proc/$BOX_INIT/exe")"
	let_go
}

FD_10() {
	need_root
	hold_box FD-10
	IMAGE=/proc/$BOX_INIT/exe "$ATTACKS/attack-FD" host-seals || breach "the agent's image can be changed"
	let_go
}

FD_11() {
	local secret=K3Y-0f-the-caller-4711 pid

	need_root
	export SECRET_TOKEN=$secret AWS_SECRET_ACCESS_KEY=$secret GLOVEBOX_API_KEY=$secret
	export SUDO_USER=x SSH_CONNECTION=x
	hold_box FD-11 --env BACKWARDS="$(rev <<<"$secret")"
	grep -qa "$secret" "/proc/$BG/environ" || breach 'the secret is nowhere: the test is void'
	for pid in $(watch_members); do
		if cat "/proc/$pid/environ" "/proc/$pid/cmdline" | grep -qa "$secret"; then
			breach "process $pid of the box has the caller's secret"
		fi
	done
	let_go
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# glovebox doctor. Machines on which something is missing are made of namespaces: what doctor --fix
# changes there is a copy.
#
# shellcheck disable=SC2016  # what is in single quotes is for jq or for a shell in such a namespace

: "${GLOVEBOX:?set GLOVEBOX to the glovebox program}"

doctor_json() {
	jq -r "$@" <<<"$OUT"
}

# The level and the texts of one check.
doctor_check() {
	doctor_json --arg id "$1" '.checks[] | select(.id == $id) | [.level, .summary, .detail, .fix] | join(" | ")'
}

# Runs a script as root in a mount namespace with its own /etc and place for templates.
doctor_elsewhere() {
	local home=$TAP_TMP/elsewhere

	mkdir -p "$home/etc" "$home/lib" /var/lib/glovebox
	cp -a /etc/. "$home/etc/"
	capture unshare --mount bash -euc '
		mount --bind "$1/etc" /etc
		mount --bind "$1/lib" /var/lib/glovebox
		eval "$2"' - "$home" "$1"
	rm -rf "$home"
}

# --- bad requests ---

for doctor_bad in --fox extra '' -x --json=1; do
	capture "$GLOVEBOX" doctor "$doctor_bad"
	is "$STATUS" 2 "doctor refuses '$doctor_bad'"
	is "$(wc -l <"$TAP_TMP/err")$OUT" 1 "... with one line and nothing else"
done
capture "$GLOVEBOX" doctor --help
is "$STATUS" 0 'doctor --help'
like "$OUT" '^Usage: glovebox doctor' '... shows how it is used'

# --- this machine ---

capture "$GLOVEBOX" doctor --json
ok 'doctor --json prints one JSON object' jq -es 'length == 1 and (.[0] | type == "object")' "$TAP_TMP/out"
is "$STATUS" "$(doctor_json 'if [.checks[].level] | index("error") then 1 else 0 end')" \
	'its exit status says whether there was an error'
is "$(doctor_json '([.checks[].id] | unique | length) == ([.checks[] | select((.level | IN("ok", "note", "warning", "error"))
	and (.summary | length > 0) and has("detail") and has("cost") and has("fix"))] | length)')" true \
	'every check has a level and says what it found'
is "$(doctor_json '[.checks[] | select(.level | IN("warning", "error")) | select(.cost == null or .fix == null) | .id] | join(" ")')" '' \
	'what is missing has a cost and a remedy'
is "$(doctor_json '["kernel", "userns", "namespaces", "proc", "tmpfs", "overlay", "idmap", "ids", "seccomp", "landlock",
	"memfd", "cgroup", "limits", "swap", "egress", "nftables", "core", "ptrace", "tiocsti", "symlinks", "disk", "languages", "box",
	"time"] - [.checks[].id] | join(" ")')" '' 'everything boxes stand on is checked'
is "$(doctor_json '.level as $l | [.checks[].level] | max_by({ok: 0, note: 1, warning: 2, error: 3}[.]) == $l')" true \
	'the level of all is the worst of them'
"$GLOVEBOX" run --json -- /bin/true >"$TAP_TMP/run.json" || true
if [ "$(jq -r .status "$TAP_TMP/run.json")" = ok ]; then
	is "$STATUS" 0 'boxes run here, and doctor agrees'
	is "$(doctor_json -S -c .isolation)" "$(jq -S -c .isolation "$TAP_TMP/run.json")" \
		'it shows the protections of a real box'
else
	is "$STATUS" 1 'boxes do not run here, and doctor agrees'
fi

# Plain runs and all others are made by two programs, of which one alone may fail.
doctor_whole=$(dirname -- "$(dirname -- "$GLOVEBOX")")/all_verbs/glovebox
if [ ! -x "$doctor_whole" ]; then
	skip 'a front that fails' 'this build has none: glovebox is one program'
elif [ "$(jq -r .status "$TAP_TMP/run.json")" = ok ]; then
	install -D -m 755 -t two/all_verbs "$doctor_whole"
	install -D -m 755 /bin/false two/cli/glovebox
	capture two/all_verbs/glovebox doctor --json
	is "$STATUS" 1 'a front that fails: an error'
	like "$(doctor_check box)" '^error .*/two/cli/glovebox.*/two/all_verbs/glovebox' '... that names both programs'
	install -m 755 /bin/true two/cli/glovebox
	capture two/all_verbs/glovebox doctor --json
	is "$STATUS" 0 '... and none when it works'
fi

capture "$GLOVEBOX" doctor
unlike "$OUT" $'\033' 'in a pipe there are no colours'
like "$OUT" '(^|'$'\n'')(ok|error) +A real box' '... and every check has a line'
capture script -qec "stty cols 80; TERM=xterm NO_COLOR= '$GLOVEBOX' doctor" /dev/null
like "$OUT" $'\033\\[32mok' 'on a terminal there are'
is "$(sed $'s/\033\\[[0-9;]*m//g; s/\r//' "$TAP_TMP/out" | grep -cE '^.{81}')" 0 '... and lines end where it ends'
capture script -qec "TERM=xterm NO_COLOR=1 '$GLOVEBOX' doctor" /dev/null
unlike "$OUT" $'\033' '... but not with NO_COLOR'

# --- machines on which something is missing ---

capture unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" doctor --json' "$GLOVEBOX"
is "$STATUS" 1 'no user namespaces: an error'
like "$(doctor_check userns)" '^error .*user.max_user_namespaces is 0.*sudo sysctl -w user.max_user_namespaces=' \
	'... that names the sysctl'
like "$(doctor_check box)" '^error .*namespaces' '... and a box that cannot be made'
is "$(doctor_json .isolation)" null '... has no protections to show'
like "$(doctor_check overlay)" '^note .*not tried' '... what follows from it is not told again'

if [ "$(id -u)" -eq 0 ]; then
	capture unshare --mount bash -c 'mount -t tmpfs none /proc/tty && exec "$0" doctor --json' "$GLOVEBOX"
	is "$STATUS" 1 'parts of /proc are hidden, as in a container: an error'
	like "$(doctor_check proc)" '^error .*mounted over parts of /proc' '... that says why'

	capture unshare --mount bash -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$0" doctor --json' "$GLOVEBOX"
	like "$(doctor_check cgroup)" '^(warning|error) .*none for us' 'no cgroups: not silent'

	if [ -e /proc/sys/vm/memfd_noexec ]; then
		capture unshare --pid --fork --mount-proc sh -c \
			'echo 2 >/proc/sys/vm/memfd_noexec && exec "$0" doctor --json' "$GLOVEBOX"
		is "$STATUS" 1 'no executable memory files: an error'
		like "$(doctor_check memfd)" '^error .*vm.memfd_noexec=1' '... with the sysctl to set'
	else
		skip 'no executable memory files' 'this kernel cannot forbid them'
	fi

	doctor_elsewhere 'root=$(mktemp -d) && mount --rbind / "$root" && chroot "$root" "$GLOVEBOX" doctor --json || true'
	like "$(doctor_check userns)" '^error .*This is a chroot.*pivot_root' 'a chroot is recognised, with what helps'
	unlike "$(doctor_check userns)" 'container' '... and no container is blamed'

	# AppArmor's restriction of user namespaces looks the same from here; the sysctl that explains it is a file of ours.
	doctor_apparmor='
		root=$(mktemp -d) && mount --rbind / "$root" && mount --make-rprivate "$root"
		mount -t tmpfs none "$root/proc/sys/kernel"
		echo 1 >"$root/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
		run() { chroot "$root" "$GLOVEBOX" doctor --json "$@" || true; }'
	doctor_elsewhere "$doctor_apparmor; run"
	like "$(doctor_check userns)" "^error .*AppArmor .*apparmor_restrict_unprivileged_userns=0" \
		"Ubuntu's restriction of user namespaces is recognised"
	doctor_programs=$(readlink -f "$GLOVEBOX")
	[ ! -x "$doctor_whole" ] || doctor_programs="$doctor_programs and $(readlink -f "$doctor_whole")"
	like "$(doctor_check userns)" "a profile with 'userns,' for $doctor_programs in " '... and the programs to allow it for are named'
	doctor_elsewhere "$doctor_apparmor; run --fix >/dev/null; cd \"\$root\"
		cat etc/sysctl.d/60-glovebox.conf proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	like "$OUT" 'kernel.apparmor_restrict_unprivileged_userns = 0'$'\n''0$' '... and lifted by --fix, for good'

	doctor_elsewhere 'echo 0 >/etc/zero && mount --bind /etc/zero /proc/sys/user/max_user_namespaces
		printf "# mine\nuser.max_user_namespaces = 0\nvm.swappiness = 9\n" >/etc/sysctl.d/60-glovebox.conf
		"$GLOVEBOX" doctor --fix --json || true
		{ cat /etc/zero; echo; cat /etc/sysctl.d/60-glovebox.conf; ls -A /etc/sysctl.d | grep new || true; } >&2'
	is "$(doctor_json '[.changes[] | select(.command | startswith("sysctl")) | .done] | tostring')" '[true]' \
		'--fix sets what needs a sysctl, and says so'
	is "$ERR" $'65536\n# mine\nvm.swappiness = 9\nuser.max_user_namespaces = 65536' \
		'... now and for good, leaving other lines alone'

	doctor_elsewhere 'sha256sum /etc/subuid >/etc/before; rm -f /etc/sysctl.d/60-glovebox.conf
		"$GLOVEBOX" doctor --fix >/dev/null; "$GLOVEBOX" doctor --fix --json
		sha256sum --quiet -c /etc/before >&2; ls /etc/sysctl.d/60-glovebox.conf >&2 || true'
	is "$(doctor_json '.changes | length')" 0 'where nothing is wrong --fix changes nothing'
	unlike "$ERR" 'FAILED|^/etc/sysctl.d/60' '... really'

	doctor_elsewhere 'useradd -M glovebox-test; sed -i /^glovebox-test:/d /etc/subuid /etc/subgid
		echo "other:100000:65536" >/etc/subuid; echo "other:165536:65536" >/etc/subgid
		SUDO_USER=glovebox-test "$GLOVEBOX" doctor --fix --json || true
		cat /etc/subuid /etc/subgid >&2'
	like "$ERR" 'glovebox-test:231072:65536.*glovebox-test:231072:65536' \
		"--fix under sudo gives the user ids that are nobody else's"
	is "$(doctor_json '[.changes[] | .done] | all')" true '... and says that it did'

	doctor_elsewhere 'echo "other:600000:65536" >>/etc/subuid; "$GLOVEBOX" doctor --json || true'
	like "$(doctor_check id-overlap)" '^warning .*other has ids' "somebody's subordinate ids among those of boxes"

	# An ordinary user.
	install_glovebox "$TAP_TMP/copy/bin"
	mkdir -p "$TAP_TMP/home" && chown 65534:65534 "$TAP_TMP/home"
	doctor_user='setpriv --reuid 65534 --regid 65534 --clear-groups env -u SUDO_USER -u XDG_RUNTIME_DIR \
		-u XDG_DATA_HOME HOME="$TAP_TMP/home" "$TAP_TMP/copy/bin/glovebox" doctor --json'
	export TAP_TMP
	doctor_elsewhere "sed -i /^nobody:/d /etc/subuid /etc/subgid; sha256sum /etc/subuid >/etc/before
		$doctor_user --fix || true; sha256sum --quiet -c /etc/before >&2"
	like "$(doctor_check ids)" '^warning .*(subuid|uidmap)' 'a user without subordinate ids is told'
	like "$(doctor_json '.changes[].command')" 'usermod --add-subuids [0-9]+-[0-9]+ --add-subgids' \
		'... and --fix names the command'
	is "$(doctor_json '[.changes[].done] | any')$ERR" false '... but changes nothing'
	like "$(doctor_check idmap)" '^note .*only root' '... and what only root has is no fault'
	rm -rf "/tmp/glovebox-65534"
else
	skip 'machines on which something is missing' 'needs root'
fi

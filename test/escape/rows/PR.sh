# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# PR: /proc, /sys and cgroups.

PR_01() {
	local before

	before=$(cat /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname)
	attack PR-01
	[ "$(cat /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname)" = "$before" ] ||
		breach "the host's core_pattern or name changed"
}

PR_02() { attack PR-02; }
PR_03() { attack PR-03; }

PR_04() {
	local before

	before=$(ls /proc/sys/fs/binfmt_misc 2>&1 || true)
	attack PR-04
	[ "$(ls /proc/sys/fs/binfmt_misc 2>&1 || true)" = "$before" ] ||
		breach 'the host has another binary format'
}

PR_05() {
	local before

	before=$(cat /sys/fs/cgroup/*/release_agent 2>/dev/null || true)
	attack PR-05
	[ "$(cat /sys/fs/cgroup/*/release_agent 2>/dev/null || true)" = "$before" ] ||
		breach "the host's release_agent changed"
}

PR_06() { attack PR-06; }

# A command that is the agent itself, by name and as a script's interpreter. It may start, as an ordinary
# process of the box; what is on disk and what the next box runs must stay as they are.
PR_07() {
	local command

	host_remember "$GLOVEBOX" "$ATTACKS/attack-PR"
	attack PR-07
	printf '#!/proc/self/exe\n' >script
	chmod 755 script
	for command in ./script /proc/self/exe; do
		box --timeout 500ms --in script -- "$command"
		[ "$STATUS" -ne 0 ] || breach "$command ended well"
	done
	attack PR-07
	host_unchanged
}

PR_08() { attack PR-08; }
PR_09() { attack PR-09; }
PR_10() { attack PR-10; }

PR_11() {
	local btime

	btime=$(awk '$1 == "btime" { print $2 }' /proc/stat)
	[ "$(cut -d. -f1 /proc/uptime)" -gt 600 ] || cannot 'the host is as young as a box'
	attack PR-11 --env HOST_BTIME="$btime" --env HOST_BOOT_ID="$(cat /proc/sys/kernel/random/boot_id)"
}

PR_12() { attack PR-12; }

PR_13() {
	attack PR-13
	box_json --memory 48M --in "$ATTACKS/attack-PR:attack" -- ./attack PR-13-bomb
	printf '%s\n' "$JSON"
	case "$(json .isolation.cgroup.memory) $(json .status) $(json .exit_code)" in
	'true memory_limit '* | 'false error 3') ;;
	*) breach "the bomb ended with $(json .status)" ;;
	esac
	[ "$(json .stdout)" = '' ] || breach 'the bomb went off'
}

PR_14() { attack PR-14; }
PR_15() { attack PR-15; }

# The host's own /proc is covered in places, as in a container: the kernel then gives a box no fresh one.
# An error that says so is right, a box with masks is right, a box without is not.
PR_16() {
	on_mounts 'mount -t tmpfs none /proc/fs && mount --bind /dev/null /proc/kallsyms'
	box --in "$ATTACKS/attack-PR:attack" -- ./attack PR-03
	printf '%s\n' "$OUT" "$ERR"
	case $STATUS in
	0) ;;
	125) [[ $ERR == *'/proc'* ]] || breach 'the reason does not name /proc' ;;
	*) breach "status $STATUS" ;;
	esac
}

PR_17() {
	local sleeper

	sleep 31.4159 &
	sleeper=$!
	# A number that no process of a box has.
	[ "$sleeper" -gt 100 ] || cannot 'this machine has too few processes'
	attack PR-17 --env HOST_PID="$sleeper" --env HOST_ARGUMENT=31.4159
	kill "$sleeper" || breach "the host's process is gone"
}

# What a language's runtime takes for the size of its machine must fit the box.
PR_18() {
	local tried=0

	if command -v node >/dev/null; then
		tried=1
		box --memory 256M --cpus 1 -l javascript -c 'const v8 = require("v8");
			console.log(require("os").cpus().length > 0 &&
				v8.getHeapStatistics().heap_size_limit <= 256 * 1048576, process.env.GOMAXPROCS)'
		[ "$OUT" = 'true 1' ] || breach "node: $OUT $ERR"
	fi
	if [ -x /usr/bin/python3 ]; then
		tried=1
		box --memory 256M --cpus 2 -l python -c 'import os
print(os.cpu_count() > 0, os.environ["OMP_NUM_THREADS"], os.environ["GOMAXPROCS"])'
		[ "$OUT" = 'True 2 2' ] || breach "python: $OUT $ERR"
	fi
	if command -v javac >/dev/null; then
		tried=1
		box --memory 256M --cpus 1 -l java -c 'public class Main { public static void main(String[] a) {
			Runtime r = Runtime.getRuntime();
			System.out.println(r.availableProcessors() + " " + (r.maxMemory() <= 256L << 20)); } }'
		[ "$OUT" = '1 true' ] || breach "java: $OUT $ERR"
	fi
	[ "$tried" -eq 1 ] || cannot 'none of these languages is installed'
}

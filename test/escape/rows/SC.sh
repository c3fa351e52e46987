# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# System calls that widen what of the kernel can be attacked (SC). Most rows are decided inside, call by
# call, in attack/SC.c; probe.h says how the filter's refusals are told from the kernel's own.

SC_01() { attack SC-01; }
SC_02() { attack SC-02; }
SC_03() { attack SC-03; }
SC_04() { attack SC-04; }

SC_05() {
	local before after

	before=$(grep -c escape /proc/keys || true)
	attack SC-05
	after=$(grep -c escape /proc/keys || true)
	[ "$before" = "$after" ] || breach "the host's keyrings have a key of the box"
}

SC_06() { attack SC-06; }

SC_07() {
	local before

	# Others mount and unmount here too, but not each time.
	for _ in 1 2 3; do
		before=$(cat /proc/self/mountinfo)
		attack SC-07
		[ "$before" != "$(cat /proc/self/mountinfo)" ] || return 0
	done
	breach "the host's mounts changed"
}

SC_08() { attack SC-08; }
SC_09() { attack SC-09; }

# The kernel's modules, whether it was told to load them or did it by itself.
modules() {
	if [ -e /proc/modules ]; then cut -d' ' -f1 /proc/modules | sort; fi
	ls /sys/module
}

SC_10() {
	local before

	before=$(modules)
	attack SC-10
	[ "$before" = "$(modules)" ] || breach "the kernel loaded a module"
}

SC_11() { attack SC-11; }
SC_12() { attack SC-12; }
SC_13() { attack SC-13; }
SC_14() { attack SC-14; }

SC_15() { attack SC-15; }

SC_16() {
	local before

	before=$(uname -n)
	attack SC-16
	[ "$before" = "$(uname -n)" ] || breach "the host has another name"
}

SC_17() { attack SC-17; }
SC_18() { attack SC-18; }
SC_19() { attack SC-19; }
SC_20() { attack SC-20; }
SC_21() { attack SC-21; }
SC_22() { attack SC-22; }
SC_23() { attack SC-23; }

# Huge pages are not counted as memory by cgroups: a box that gets one takes it from the whole machine.
# Most machines have none in reserve, and there nothing could be seen; so two are put there for a moment.
SC_24() {
	local reserve=/proc/sys/vm/nr_hugepages

	if [ -w "$reserve" ]; then
		HUGE_PAGES=$(cat "$reserve")
		trap 'echo "$HUGE_PAGES" >/proc/sys/vm/nr_hugepages' EXIT
		echo $((HUGE_PAGES + 2)) >"$reserve"
	fi
	attack SC-24
}

SC_25() { attack SC-25; }
SC_26() { attack SC-26; }

# shellcheck disable=SC2016  # programs in other languages
# Programs that people run, and what they need of a kernel beyond the ordinary.
SC_27() {
	attack SC-27
	box -- sh -c 'seq 1000 | sort -rn | head -n 1 | tee /tmp/x >/dev/null && cp -r /etc/ssl /tmp/ssl && cat /tmp/x'
	[ "$OUT" = 1000 ] || breach "shell tools: $STATUS $OUT $ERR"
	works_if python3 python -c '
import threading, subprocess, multiprocessing as m, socket, selectors, tempfile, time
p = m.get_context("fork").Pool(2)
assert p.map(abs, [-1, -2]) == [1, 2]
p.terminate()
assert subprocess.run(["echo", "hi"], capture_output=True).stdout == b"hi\n"
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
t = threading.Thread(target=time.sleep, args=(0.01,)); t.start(); t.join()
print("works")'
	works_if perl perl -c 'my $p = fork; exit 0 unless $p; waitpid $p, 0; print "works\n"'
	works_if ruby ruby -c 'Thread.new { `echo hi` }.join; puts "works"'
	works_if gcc c -c '#include <stdio.h>
int main(void) { return puts("works") < 0; }'
	# Without a memory cgroup the limit is one of addresses, of which these reserve far more than they use.
	box_json -- true
	[ "$(json .isolation.cgroup.memory)" = true ] || return 0
	works_if node javascript -c '
const { Worker, isMainThread } = require("worker_threads"), fs = require("fs");
const { execFileSync } = require("child_process");
fs.watch("/tmp", () => {}).close();
if (execFileSync("echo", ["hi"]).toString() !== "hi\n") process.exit(1);
new Worker("require(\"worker_threads\").parentPort.postMessage(1)", { eval: true })
	.on("message", () => console.log("works"));'
	works_if java java -c 'class Main { public static void main(String[] a) throws Exception {
	Thread t = new Thread(() -> System.out.println("works")); t.start(); t.join(); } }'
}

# works_if PROGRAM LANGUAGE OPTION…: where the host has the program, the box must run it.
works_if() {
	local program=$1 language=$2

	shift 2
	PATH=/usr/local/bin:/usr/bin:/bin command -v "$program" >/dev/null || return 0
	box --pids 128 --memory 512M --timeout 60s --cpu-time 60s -l "$language" "$@"
	[ "$OUT" = works ] || breach "$language: status $STATUS: $OUT $ERR"
}

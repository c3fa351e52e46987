#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times glovebox beside its peers, in one run, and says how they compare. Called by script/bench."""
import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time

TRUE, PYTHON = ["/bin/true"], ["/usr/bin/python3", "-c", "pass"]  # never a shim from somebody's PATH
BWRAP = ("/usr/bin/bwrap --unshare-all --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64"
         " /lib64 --symlink usr/bin /bin --proc /proc --dev /dev --tmpfs /tmp").split()
RUNSC = "/usr/bin/runsc --network=none do".split()
GLOVEBOX = [os.environ["GLOVEBOX"], "run"]
CASES = {  # name: what comes before the program, the program
    "true": ([], TRUE),
    "bwrap-true": (BWRAP, TRUE),
    "runsc-true": (RUNSC, TRUE),
    "glovebox-true": (GLOVEBOX + ["--"], TRUE),
    "python": ([], PYTHON),
    "bwrap-python": (BWRAP, PYTHON),
    "glovebox-python": (GLOVEBOX + ["--"], PYTHON),
    "glovebox-lang-python": (GLOVEBOX + ["-l", "python"], PYTHON[1:]),
}
TARGETS = (("glovebox-true", 0.8, "bwrap-true"), ("glovebox-python", 1.35, "python"),
           ("glovebox-lang-python", 1.35, "python"))
SLOW, SLOW_EVERY = "runsc-true", 10  # takes 0.1 s and more
RATES, RATE_WIDTH, RATE_COUNT = ("bwrap-true", "glovebox-true", "python", "glovebox-python"), 2, 40
BUSY = 0.1  # when others use more of the processors than this, the numbers are worth nothing
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"),
       "LC_ALL": "C", "GLOVEBOX_LANGUAGES": os.path.join(os.path.dirname(__file__), "../languages")}


def ask(argv):
    """Status, output and errors of one command; a status of None when it is not there."""
    if not os.access(argv[0], os.X_OK):
        return None, "", f"{argv[0]} is not installed"
    done = subprocess.run(["/usr/bin/timeout", "60", *argv], env=ENV, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def problem(sandbox, program):
    """Why this cannot be measured, or None. What runs nothing would be quick too, so the program has
    to succeed and one that fails has to fail, with its own status."""
    failing = (["/bin/false"], 1) if program is TRUE else (program[:-1] + ["raise SystemExit(7)"], 7)
    for command, want in ((program, 0), failing):
        status, _, errors = ask(sandbox + command)
        if status != want:
            return f"status {status} instead of {want}: {errors.partition(chr(10))[0][:160]}"
    return None


def schedule(names, rounds):
    """The turns, one letter each. Every round has an order of its own: a sandbox leaves work behind
    (the kernel takes its namespaces apart later) that must not always fall on the same successor. The
    slow one leaves the most, so there is a pause after it."""
    shuffler, turns = random.Random(1), []
    for number in range(rounds):
        order = [name for name in names if name != SLOW or number % SLOW_EVERY == 0]
        shuffler.shuffle(order)
        turns += [chr(ord("a") + names.index(name)) + "." * (name == SLOW) for name in order]
    return "".join(turns)


def measure(spawn, names, rounds, width=1, count=1):
    """Sorted milliseconds of every turn, by name."""
    if not names:
        return {}
    argv = [spawn, str(width), str(count)]
    for name in names:
        argv += [*CASES[name][0], *CASES[name][1], ";"]
    done = subprocess.run(argv, env=ENV, input=schedule(names, rounds), stdout=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: what worked before failed while it was measured; a, b, ... are {names}")
    samples = {name: [] for name in names}
    for line in done.stdout.splitlines():
        samples[names[ord(line[0]) - ord("a")]].append(int(line[2:]) / 1e6)
    return {name: sorted(values) for name, values in samples.items()}


def summarise(samples):
    """Ratios are those of the medians. p99 by nearest rank: below 100 runs that is the slowest."""
    p50 = {name: statistics.median(values) for name, values in samples.items()}

    def ratio(name, base):
        return p50[name] / p50[base] if name in p50 and base in p50 else None
    rows = {name: {"runs": len(ms), "min_ms": ms[0], "p50_ms": p50[name],
                   "p99_ms": ms[-(-99 * len(ms) // 100) - 1],
                   "of_bwrap_true": ratio(name, "bwrap-true"), "of_python": ratio(name, "python")}
            for name, ms in samples.items()}
    return rows, [{"name": name, "base": base, "at_most": most, "ratio": ratio(name, base),
                   "met": (ratio(name, base) or most + 1) <= most} for name, most, base in TARGETS]


def load():
    """The load averages, and how much of the processors others use now, 0 to 1, with stolen time."""
    def ticks():
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(field) for field in stat.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    average, (total, idle) = os.getloadavg(), ticks()
    time.sleep(1)
    total_after, idle_after = ticks()
    return {"average": average, "busy": 1 - (idle_after - idle) / max(1, total_after - total)}


def show(report, out):
    """The table people read."""
    def times(ratio):
        return f"{ratio:.2f} x" if ratio else "-"
    machine = report["machine"]
    print(f"{machine['glovebox']}, uid {machine['uid']}, Linux {machine['kernel']}, {machine['cpus']} CPUs, "
          f"cgroup {machine['isolation']['cgroup']['mode']}, load {machine['before']['average'][0]:.2f} "
          f"before and {machine['after']['average'][0]:.2f} after\n\n{'milliseconds':22}{'min':>9}{'p50':>9}"
          f"{'p99':>9}{'/ bwrap true':>14}{'/ python3':>12}{'runs':>7}", file=out)
    for name, row in report["cases"].items():
        print(f"{name:22}{row['min_ms']:9.2f}{row['p50_ms']:9.2f}{row['p99_ms']:9.2f}"
              f"{times(row['of_bwrap_true']):>14}{times(row['of_python']):>12}{row['runs']:7}", file=out)
    for name, why in report["skipped"].items():
        print(f"{name:22}  skipped: {why}", file=out)
    print(f"\nruns per second, {RATE_WIDTH} at a time:",
          ", ".join(f"{name} {rate:.0f}" for name, rate in report["per_second"].items()), file=out)
    for target in report["targets"]:
        mark = "met" if target["met"] else "MISSED" if target["ratio"] else "not measured"
        print(f"target {mark:12}  {target['name']} is {times(target['ratio'])} {target['base']}, "
              f"at most {target['at_most']} x", file=out)
    if report["busy"]:
        print("The machine was busy with other things: do not trust these numbers.", file=out)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--spawn", "--rounds", "--only", "--json"):
        parser.add_argument(name)
    options = parser.parse_args()
    unknown = set(options.only.split(",") if options.only else CASES) - set(CASES)
    if unknown:
        print(f"bench: no {unknown.pop()!r} to measure; there are: {','.join(CASES)}", file=sys.stderr)
        return 2
    names = [name for name in CASES if not options.only or name in options.only.split(",")]
    skipped = {name: why for name in names if (why := problem(*CASES[name]))}
    for name in skipped:
        if name.startswith("glovebox"):
            sys.exit(f"bench: {name}: {skipped[name]}")
    names = [name for name in names if name not in skipped]
    machine = {"kernel": platform.release(), "arch": platform.machine(), "uid": os.getuid(),
               "cpus": len(os.sched_getaffinity(0)), "glovebox": ask([GLOVEBOX[0], "version"])[1],
               **{peer[0]: ask([peer[0], "--version"])[1] for peer in (PYTHON, BWRAP, RUNSC)},
               "isolation": json.loads(ask(GLOVEBOX + ["--json", "--", *TRUE])[1])["isolation"],
               "before": load()}
    rows, targets = summarise(measure(options.spawn, names, int(options.rounds)))
    turns = measure(options.spawn, [name for name in names if name in RATES],
                    max(3, int(options.rounds) // 50), RATE_WIDTH, RATE_COUNT)
    machine["after"] = load()
    report = {"machine": machine, "cases": rows, "skipped": skipped, "targets": targets,
              "per_second": {name: 1000 * RATE_COUNT / statistics.median(ms) for name, ms in turns.items()},
              "busy": max(machine["before"]["busy"], machine["after"]["busy"]) > BUSY}
    show(report, sys.stderr if options.json == "-" else sys.stdout)
    if options.json == "-":
        print(json.dumps(report, indent=2))
    elif options.json:
        with open(options.json, "w", encoding="ascii") as out:
            print(json.dumps(report, indent=2), file=out)
    return 0 if all(target["met"] for target in targets) else 3


if __name__ == "__main__":
    sys.exit(main())

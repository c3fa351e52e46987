#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times glovebox beside its peers, in one run, and says how they compare. Called by script/bench."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

PYTHON = "/usr/bin/python3"  # never a shim from somebody's PATH
BWRAP = ("/usr/bin/bwrap --unshare-all --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64"
         " /lib64 --symlink usr/bin /bin --proc /proc --dev /dev --tmpfs /tmp").split()
RUNSC = ["/usr/bin/runsc", "--network=none", "do"]
TARGETS = (  # what, at most how many times, what
    ("glovebox-true", 0.8, "bwrap-true"),
    ("glovebox-python", 1.35, "python"),
    ("glovebox-lang-python", 1.35, "python"),
)
SLOW_EVERY = 10  # a run of these takes 0.1 s and more
RATES = ("bwrap-true", "glovebox-true", "python", "glovebox-python")
RATE_WIDTH, RATE_COUNT = 2, 40
BUSY = 0.1  # more of the processors than this taken by others, and the numbers are worth nothing


def all_cases(glovebox):
    """What is measured: name -> (command up to the program, program)."""
    true, python = ["/bin/true"], [PYTHON, "-c", "pass"]
    return {
        "true": ([], true),
        "bwrap-true": (BWRAP, true),
        "runsc-true": (RUNSC, true),
        "glovebox-true": ([glovebox, "run", "--"], true),
        "python": ([], python),
        "bwrap-python": (BWRAP, python),
        "glovebox-python": ([glovebox, "run", "--"], python),
        "glovebox-lang-python": ([glovebox, "run", "-l", "python"], ["-c", "pass"]),
    }


def probe(sandbox, program, env):
    """Why this cannot be measured, or None. What runs nothing would be quick too, so the program has
    to succeed and one that fails has to fail, with its own status."""
    wrong = ["/bin/false"] if len(program) == 1 else program[:-1] + ["raise SystemExit(7)"]
    for command, want in ((program, 0), (wrong, 1 if len(program) == 1 else 7)):
        argv = sandbox + command
        if not os.access(argv[0], os.X_OK):
            return f"{argv[0]} is not installed"
        try:
            done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return f"no end after 60 s: {' '.join(argv)}"
        if done.returncode != want:
            said = (done.stderr.strip().splitlines() or ["nothing said"])[0][:160]
            return f"status {done.returncode} instead of {want}: {said}"
    return None


def measure(spawn, env, rounds, width, count, cases):
    """Nanoseconds of every turn, by name."""
    argv = [spawn, str(rounds), str(width), str(count)]
    for name, (sandbox, program) in cases.items():
        argv += [str(SLOW_EVERY if name.startswith("runsc") else 1), *sandbox, *program, ";"]
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit("bench: a command that worked before failed while it was measured (see above)")
    names, samples = list(cases), {name: [] for name in cases}
    for line in done.stdout.splitlines():
        index, ns = line.split()
        samples[names[int(index)]].append(int(ns))
    return samples


def summarise(samples):
    """Milliseconds, and ratios of the medians. p99 by nearest rank: below 100 runs, the slowest."""
    rows = {}
    for name, values in samples.items():
        values = sorted(values)
        rank = -(-99 * len(values) // 100)
        rows[name] = {"runs": len(values), "min_ms": values[0] / 1e6,
                      "p50_ms": statistics.median(values) / 1e6, "p99_ms": values[rank - 1] / 1e6}
    for row in rows.values():
        for key, base in (("of_bwrap_true", "bwrap-true"), ("of_python", "python")):
            row[key] = row["p50_ms"] / rows[base]["p50_ms"] if base in rows else None
    return rows


def judge(rows):
    """One verdict per target; None where one side was not measured."""
    verdicts = []
    for name, most, base in TARGETS:
        ratio = rows[name]["p50_ms"] / rows[base]["p50_ms"] if {name, base} <= set(rows) else None
        verdicts.append({"name": name, "base": base, "at_most": most, "ratio": ratio,
                         "met": None if ratio is None else ratio <= most})
    return verdicts


def busy_share(seconds=1.0):
    """How much of the processors others use while nothing is measured, 0 to 1, stolen time included."""
    def read():
        with open("/proc/stat", encoding="ascii") as stat:
            ticks = [int(field) for field in stat.readline().split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]
    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return round(1 - (idle_after - idle) / max(1, total_after - total), 3)


def machine_facts(glovebox, env):
    """What a number from here has to be read with."""
    def ask(*argv):
        if not os.access(argv[0], os.X_OK):
            return None
        return subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False).stdout.strip()
    return {"kernel": platform.release(), "arch": platform.machine(), "uid": os.getuid(),
            "cpus": len(os.sched_getaffinity(0)), "glovebox": ask(glovebox, "version"),
            "python": ask(PYTHON, "--version"), "bwrap": ask(BWRAP[0], "--version"),
            "runsc": ask(RUNSC[0], "--version"),
            "isolation": json.loads(ask(glovebox, "run", "--json", "--", "/bin/true"))["isolation"]}


def show(report, out):
    """The table people read."""
    def ratio(value):
        return "-" if value is None else f"{value:.2f} x"
    facts = report["machine"]
    print(f"{facts['glovebox']}, Linux {facts['kernel']}, {facts['cpus']} CPUs, cgroup "
          f"{facts['isolation']['cgroup']['mode']}, uid {facts['uid']}, load "
          f"{facts['load_before'][0]:.2f} before, {facts['load_after'][0]:.2f} after\n", file=out)
    print(f"{'ms':22}{'min':>9}{'p50':>9}{'p99':>9}{'/ bwrap true':>14}{'/ python3':>12}{'runs':>7}", file=out)
    for name, row in report["cases"].items():
        print(f"{name:22}{row['min_ms']:9.2f}{row['p50_ms']:9.2f}{row['p99_ms']:9.2f}"
              f"{ratio(row['of_bwrap_true']):>14}{ratio(row['of_python']):>12}{row['runs']:7}", file=out)
    for name, why in report["skipped"].items():
        print(f"{name:22}  skipped: {why}", file=out)
    print(f"\nruns per second, {RATE_WIDTH} at a time:  " +
          ",  ".join(f"{name} {rate:.0f}" for name, rate in report["per_second"].items()), file=out)
    for target in report["targets"]:
        mark = {True: "met", False: "MISSED", None: "not measured"}[target["met"]]
        print(f"{mark:>12}: {target['name']} at most {target['at_most']} x {target['base']}"
              f" ({ratio(target['ratio'])})", file=out)
    if report["busy"]:
        print("\nThe machine was busy with other things: do not trust these numbers.", file=out)


def read_options():
    """script/bench has looked at them already, except for the names."""
    parser = argparse.ArgumentParser()
    for name in ("--glovebox", "--spawn", "--only", "--json"):
        parser.add_argument(name, default="")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.cases = all_cases(options.glovebox)
    chosen = options.only.split(",") if options.only else list(options.cases)
    for name in chosen:
        if name not in options.cases:
            print(f"bench: no '{name}' to measure; there are: {','.join(options.cases)}", file=sys.stderr)
            sys.exit(2)
    options.cases = {name: case for name, case in options.cases.items() if name in chosen}
    return options


def main():
    options = read_options()
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LC_ALL": "C",
           "GLOVEBOX_LANGUAGES": os.path.join(os.path.dirname(__file__), "../languages")}
    problems = {name: probe(*case, env) for name, case in options.cases.items()}
    skipped = {name: why for name, why in problems.items() if why}
    for name, why in skipped.items():
        if name.startswith("glovebox"):
            sys.exit(f"bench: {name}: {why}")
    cases = {name: case for name, case in options.cases.items() if name not in skipped}
    if not cases:
        sys.exit(f"bench: nothing to measure: {skipped}")

    facts = machine_facts(options.glovebox, env)
    facts["load_before"], facts["busy_before"] = os.getloadavg(), busy_share()
    rows = summarise(measure(options.spawn, env, options.rounds, 1, 1, cases))
    rated = {name: case for name, case in cases.items() if name in RATES}
    turns = measure(options.spawn, env, max(3, options.rounds // 50), RATE_WIDTH, RATE_COUNT, rated)
    facts["load_after"], facts["busy_after"] = os.getloadavg(), busy_share()
    report = {"machine": facts, "cases": rows, "skipped": skipped, "targets": judge(rows),
              "per_second": {name: RATE_COUNT * 1e9 / statistics.median(ns) for name, ns in turns.items()},
              "busy": max(facts["busy_before"], facts["busy_after"]) > BUSY}

    show(report, sys.stderr if options.json == "-" else sys.stdout)
    if options.json == "-":
        print(json.dumps(report, indent=2))
    elif options.json:
        with open(options.json, "w", encoding="ascii") as out:
            print(json.dumps(report, indent=2), file=out)
    return 1 if options.check and not all(target["met"] for target in report["targets"]) else 0


if __name__ == "__main__":
    sys.exit(main())

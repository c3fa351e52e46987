# SPDX-License-Identifier: Apache-2.0
"""E2B's own clients, unmodified and in several versions, drive a running service. Prints TAP.

    run [SDK | AREA]...     only these: js, js-2.15.0, cli, python, interpreter-js, commands, charts, ...

The packages come from the registry this machine is set up for; without one everything is skipped, with the
reason. Results: $GLOVEBOX_BUILD/sdk-results.json, from which test/sdk/table makes the table in README.md.
"""
import collections
import concurrent.futures
import contextlib
import errno
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "net"), str(HERE)]
import lab  # noqa: E402  pylint: disable=wrong-import-position
import packages  # noqa: E402  pylint: disable=wrong-import-position
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

AREAS = {
    "js": ("package", "create", "list", "lifecycle", "snapshots", "commands", "files", "watch", "pty", "git", "urls",
           "errors", "network", "secrets", "hosts"),
    "cli": ("create", "list", "lifecycle", "snapshots", "commands", "pty", "errors", "logs"),
    "python": ("create", "list", "lifecycle", "snapshots", "commands", "files", "watch", "pty", "git", "urls", "errors",
               "secrets", "network", "hosts", "async"),
    "interpreter-js": ("package", "cells", "output", "contexts", "environment", "results", "charts", "languages", "interrupt",
                       "lifecycle", "hosts"),
    "interpreter-python": ("cells", "output", "contexts", "environment", "results", "charts", "languages", "interrupt",
                           "lifecycle", "async"),
}
# What a program imports.
PACKAGE = {"js": "e2b", "cli": "e2b", "python": "e2b", "interpreter-js": "@e2b/code-interpreter", "interpreter-python": "e2b_code_interpreter"}
AT_ONCE = 2
FETCHES_AT_ONCE = 4
AREA_SECONDS = 240
BROKEN_OFF_SHOWN = 20_000  # characters of the log
VERDICT = re.compile(r"^(not )?ok\b(?: \d+)?(?: - )?(.*)$")
T = tap.Tap()
LAB = {}  # the laboratory of the area "network" and its service, if there can be one
Job = collections.namedtuple("Job", "kind version area directory")


def command_of(job):
    if job.kind in ("js", "interpreter-js"):
        preload = ["--import", str(HERE / "js/lookup.mjs")] if job.area == "hosts" else []
        return [packages.node(), *preload, str(HERE / "js/main.mjs"), str(HERE / job.kind / f"{job.area}.mjs")]
    if job.kind == "cli":
        return [packages.PYTHON, str(HERE / "cli/areas.py"), job.area, packages.node()]
    return [packages.PYTHON, str(HERE / "python/harness.py"), str(HERE / job.kind / f"area_{job.area}.py")]


def environment(job, services):
    """Two variables are what an application needs; the rest is for the tests themselves."""
    first, limited, named = services
    where = {"E2B_API_KEY": first.key, "E2B_API_URL": first.url, "E2B_SANDBOX_URL": first.url}
    if job.area == "hosts":
        where = {"E2B_API_KEY": named.key, "E2B_DOMAIN": named.settings["server.domain"], "NODE_EXTRA_CA_CERTS": named.ca,
                 "SSL_CERT_FILE": named.ca}
        if job.kind == "python":  # it looks names up by itself, asking a server, and there is none that knows ours
            where |= {"E2B_API_URL": named.url, "E2B_SANDBOX_URL": named.url}
    if job.area == "network":
        running = LAB["service"]
        where = {"E2B_API_KEY": running.key, "E2B_API_URL": running.url, "E2B_SANDBOX_URL": running.url}
    return service.CLEAN | where | {
        "PATH": os.environ.get("PATH", service.CLEAN["PATH"]),
        "OTHER_KEY": first.other_key, "LIMITED_URL": limited.url, "LIMITED_KEY": limited.key,
        "SDK_DIR": str(job.directory), "SDK_VERSION": job.version, "SDK_PACKAGE": PACKAGE[job.kind],
        "PYTHONPATH": str(job.directory / "site"), "PYTHONDONTWRITEBYTECODE": "1"}


def run_job(job, services):
    """Its output and how it ended; a hung one is ended and says so."""
    started = time.monotonic()
    try:
        with LAB["net"].inside() if job.area == "network" else contextlib.nullcontext():
            done = subprocess.run(command_of(job), env=environment(job, services), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=AREA_SECONDS, check=False)
        output, end = done.stdout, None
    except subprocess.TimeoutExpired as late:
        output, end = late.stdout or b"", f"not done within {AREA_SECONDS} s"
    return output.decode(errors="replace"), end, time.monotonic() - started


def report(job, output, end):
    """Passes the area's verdicts on under the name of its client. Returns the counts."""
    count = collections.Counter(passed=0, failed=0, skipped=0)
    prefix, planned, why = f"{job.kind} {job.version} {job.area}", None, []
    pending = None

    def flush():
        if pending is None:
            return
        good, name = pending
        skipped = re.search(r" # SKIP (.*)$", name)
        if good and skipped:
            count["skipped"] += 1
            T.skip(f"{prefix}: {name[:skipped.start()]}", skipped.group(1))
        else:
            count["passed" if good else "failed"] += 1
            T.ok(good, f"{prefix}: {name}", *why)
    for line in output.splitlines():
        if (match := VERDICT.match(line)):
            flush()
            pending, why = (not match.group(1), match.group(2)), []
        elif (match := re.match(r"^1\.\.(\d+)$", line)):
            planned = int(match.group(1))
        else:
            why.append(line.removeprefix("# "))
    flush()
    if end or planned is None:
        count["failed"] += 1
        T.ok(False, f"{prefix}: it ran to its end", end or "it printed no plan", output[-2000:])
    return count


def wanted(names):
    """The clients and areas that were asked for; everything when none was."""
    known = {name for kind, version, _ in packages.PACKAGES for name in (kind, f"{kind}-{version}", *AREAS[kind])}
    if unknown := set(names) - known:
        print(f"test/sdk/run: no {unknown.pop()!r}; there are: {' '.join(sorted(known))}", file=sys.stderr)
        sys.exit(2)
    clients = {name for name in names if re.match(rf"^({'|'.join(AREAS)})(-|$)", name)}
    areas = set(names) - clients
    return ([each for each in packages.PACKAGES if not clients or {each[0], f"{each[0]}-{each[1]}"} & clients],
            lambda area: not areas or area in areas)


def collect_jobs(chosen, area_wanted):
    """The areas of every client that can be had. Registries are slow: several clients are fetched at once."""
    areas = {each: [area for area in AREAS[each[0]] if area_wanted(area)] for each in chosen}
    with concurrent.futures.ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        fetched = {each: pool.submit(packages.fetch, *each) for each in chosen if areas[each]}
    jobs = []
    for each, directory in fetched.items():
        kind, version, _ = each
        try:
            jobs += [Job(kind, version, area, directory.result()) for area in areas[each]]
        except packages.Unavailable as why:
            T.skip(f"{kind} {version}", why)
        except RuntimeError as error:
            T.ok(False, f"{kind} {version} is installed", error)
    return jobs


def run_jobs(jobs, services):
    results = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {job: pool.submit(run_job, job, services) for job in jobs}
        for job, future in running.items():
            output, end, seconds = future.result()
            T.diag(f"{job.kind} {job.version} {job.area}: {seconds:.1f} s")
            results.setdefault((job.kind, job.version), {})[job.area] = dict(report(job, output, end))
    return results


def service_with_names(directory):
    """A service over TLS that gives every sandbox a name below a domain of its own."""
    port = service.free_port()
    subprocess.run([service.GLOVEBOX, "cert", "sbx.test", "--out", directory], check=True, capture_output=True)
    cert, key, ca = (os.path.join(directory, name) for name in ("cert.pem", "key.pem", "ca.pem"))
    running = service.Service({"server.tls_cert": cert, "server.tls_key": key, "server.domain": f"sbx.test:{port}"}, port=port, ca=ca)
    running.ca = ca
    return running


def cut_off(running):
    """What the log has of answers that the service broke off."""
    return "\n".join(line for line in running.log().splitlines()
                     if '"cut"' in line and os.strerror(errno.ECONNRESET) not in line)


def wait_until_loaded(running):
    """Until Python contexts are forked from an interpreter that is loaded: started one by one, twenty of them need
    more memory than a sandbox has. Where they are never forked, the tests that need it say so."""
    made = running.ask("POST", "/v2/sandboxes", {"templateID": "code-interpreter-v1"})[1]
    headers = {"E2b-Sandbox-Id": made["sandboxID"], "E2b-Sandbox-Port": "49999", "X-Access-Token": made["envdAccessToken"]}

    def forked():
        context = running.ask("POST", "/contexts", {}, headers)[1]["id"]
        said = running.ask("POST", "/execute", {"code": "print(open('/proc/self/cmdline').read())", "context_id": context}, headers)[1]
        running.ask("DELETE", f"/contexts/{context}", None, headers)
        return "zygote.py" in said
    service.wait_for(forked, 40, 0.5)
    running.ask("DELETE", f"/sandboxes/{made['sandboxID']}")


@contextlib.contextmanager
def laboratory(jobs):
    """A service whose sandboxes get every public address, as E2B's do, where all public addresses are the tests' own.
    Gives the jobs that can be run."""
    if not any(job.area == "network" for job in jobs):
        yield jobs
        return
    if why := lab.cannot():
        T.skip("the area network", why)
        yield [job for job in jobs if job.area != "network"]
        return
    with lab.Lab() as net:
        LAB.update(net=net, service=net.service(egress__internet="all"))
        try:
            yield jobs
        finally:
            T.equal(LAB["service"].stop(), 0, "the laboratory's service ends when asked")


def run_all(jobs, services):
    """Starts the services, runs everything, looks whether they came through it well."""
    first, limited, named = services
    first.start()
    limited.start()
    try:
        named.start()
    except service.ServiceError as error:
        T.ok(False, "a service with names and TLS runs", error)
        jobs = [job for job in jobs if job.area != "hosts"]
    first.other_key = first.new_key()
    pid = first.server_pid()
    if any(job.kind.startswith("interpreter") for job in jobs):
        wait_until_loaded(first)
    with laboratory(jobs) as possible:
        results = run_jobs(possible, services)
    T.ok(first.process.poll() is None, "the service still runs", first.log_tail())
    T.equal(first.server_pid(), pid, "the server was never started again")
    T.ok(service.wait_for(lambda: not first.ask("GET", "/v2/sandboxes")[1]), "no sandbox is left",
         first.ask("GET", "/v2/sandboxes")[1])
    return results


def save(results):
    report_file = packages.cache().parent / "sdk-results.json"
    sdks = [{"kind": kind, "version": version, "areas": areas} for (kind, version), areas in results.items()]
    report_file.write_text(json.dumps({"sdks": sdks}, indent=2) + "\n", encoding="utf-8")
    return report_file


def check_readme(report_file):
    done = subprocess.run([str(HERE / "table"), "--check", str(service.ROOT / "README.md"), str(report_file)],
                          capture_output=True, text=True, check=False)
    T.ok(done.returncode == 0, "README.md shows this table", done.stderr)


def main():
    chosen, area_wanted = wanted(sys.argv[1:])
    if os.getuid() != 0:
        tap.skip_all("needs root")
    if not os.access(service.GLOVEBOX, os.X_OK):
        tap.skip_all(f"no program at {service.GLOVEBOX}")
    packages.cache().mkdir(parents=True, exist_ok=True)
    jobs = collect_jobs(chosen, area_wanted)
    if not jobs:
        return T.finish()
    first, limited = service.Service(), service.Service({"limits.sandboxes_per_key": 2})
    with tempfile.TemporaryDirectory() as directory:
        services = (first, limited, service_with_names(directory))
        try:
            results = run_all(jobs, services)
        except service.ServiceError as error:
            T.ok(False, "the service runs", error)
            results = {}
        finally:
            if T.failed:
                T.diag("the service said at last:\n" + first.log_tail())
                T.diag("requests that broke off, not by the client:\n" + cut_off(first)[-BROKEN_OFF_SHOWN:])
            statuses = [each.stop() for each in services]
    T.equal(statuses[:2], [0, 0], "the services end when asked")
    T.equal(service.left_behind(), "", "nothing is left behind")
    if len(sys.argv) == 1 and len(results) == len(packages.PACKAGES):
        check_readme(save(results))
    else:
        T.skip("README.md shows this table", "not every client was run")
    return T.finish()


if __name__ == "__main__":
    sys.exit(main())

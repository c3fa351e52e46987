# SPDX-License-Identifier: Apache-2.0
"""The server under ThreadSanitizer: a good part of the api suite and a crowd of clients at the same sandboxes, and not
one report. The server is built for it beside the build under test ($BUILD-tsan); the rest of the service is that build.
run [SECONDS] sets how long the crowd stays (60). Prints TAP."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position
from load import Load  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
THREADS = 12
# What needs a quick server is left out (slow, flood, limits), and what no sanitized server can pass: it has no seal.
API_PARTS = ("auth", "routes", "bodies", "control", "webhooks", "files", "uploads", "rpc", "interpreter", "kernels", "reasons", "network", "ports")
NOT_SEALED = re.compile("AP-17: the server's memory|/capabilities")
BUILD = pathlib.Path(f"{service.BUILD}-tsan")
TMP = pathlib.Path(tempfile.mkdtemp(prefix="glovebox-tsan."))
REPORT = "WARNING: ThreadSanitizer"


def compiler():
    return os.environ.get("CC", "cc").split()


def build_server():
    """The program, where the server's user can start it. Raises CalledProcessError."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), str(service.ROOT), "-Db_sanitize=thread", "-Db_lundef=false", "-Dtests=false"],
                       check=True, capture_output=True, text=True)
    subprocess.run(["meson", "compile", "-C", str(BUILD), "glovebox-server"], check=True, capture_output=True, text=True)
    return shutil.copy(BUILD / "src/server/glovebox-server", TMP / "glovebox-server")


def build_race():
    subprocess.run([*compiler(), "-g", "-fsanitize=thread", str(HERE / "race.c"), "-o", str(TMP / "race"), "-pthread"],
                   check=True, capture_output=True, text=True)
    return TMP / "race"


def build_wrapper(program, logs):
    """A program that starts another one so that its reports go to a directory."""
    logs.mkdir()
    logs.chmod(0o777)  # the server has a user of its own
    options = f"log_path={logs}/report suppressions={TMP}/suppressions exitcode=0 history_size=4"
    path = TMP / f"wrapper-{pathlib.Path(program).name}"
    subprocess.run([*compiler(), f'-DPROGRAM="{program}"', f'-DOPTIONS="{options}"', str(HERE / "wrapper.c"), "-o", str(path)],
                   check=True, capture_output=True, text=True)
    return path


def reports(logs):
    """What was written there, report by report."""
    found = []
    for path in sorted(logs.iterdir()):
        text = path.read_text(errors="replace")
        found += [REPORT + part for part in text.split(REPORT)[1:]]
        if text and REPORT not in text:
            found.append(text)  # it could not even start, say
    return found


def forget_reports(logs):
    for path in logs.iterdir():
        path.unlink()


def show(found):
    return [f"{len(found)} reports"] + [report[:2500] for report in found[:3]]


def check_sanitizer(verdicts):
    """A program with a race, started like the server: is it seen?"""
    try:
        race = build_race()
    except subprocess.CalledProcessError as error:
        tap.skip_all(f"no ThreadSanitizer: {error.stderr.splitlines()[:1]}")
    logs = TMP / "race-logs"
    done = subprocess.run([build_wrapper(race, logs)], env={}, check=False, capture_output=True, text=True)
    found = reports(logs)
    return verdicts.ok(done.returncode == 0 and any("data race" in report and "race.c" in report for report in found),
                       "a race in a program that is started like the server is reported", done, *show(found))


def glovebox_with(wrapper):
    """A program that is glovebox, except that its server is another one."""
    path = TMP / "glovebox"
    path.write_text(f"#!/bin/sh\n[ \"$1\" != serve ] || set -- \"$@\" --server '{wrapper}'\nexec '{service.GLOVEBOX}' \"$@\"\n")
    path.chmod(0o755)
    return str(path)


def run_api(verdicts, glovebox):
    """The api suite: what it says of races is in the log, the rest must hold too."""
    done = subprocess.run([HERE.parent / "api/run", *API_PARTS], env=os.environ | {"GLOVEBOX": glovebox}, check=False,
                          capture_output=True, text=True, timeout=550)
    lines = done.stdout.splitlines()
    bad = [line for line in lines if line.startswith(("not ok", "Bail out")) and not NOT_SEALED.search(line)]
    good = sum(line.startswith("ok ") for line in lines)
    verdicts.ok(not bad and good > 50 and any(re.match(r"1\.\.\d", line) for line in lines),
                f"the api suite holds ({good} verdicts)", *bad, done.stdout[-3000:], done.stderr[-1000:])


def is_sanitized(pid):
    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    return b"TSAN_OPTIONS=log_path=" in environment and b"__tsan_init" in pathlib.Path(f"/proc/{pid}/exe").read_bytes()


def run_load(verdicts):
    running = service.Service({"limits.sandboxes": 60})
    try:
        running.start()
        pid = running.server_pid()
        verdicts.ok(pid and is_sanitized(pid), "the server runs with the sanitizer")
        load = Load(running.port, [running.key, running.new_key()], SECONDS)
        ended = load.run(THREADS)
        verdicts.ok(ended and not load.odd, f"a crowd gets answers: {sum(load.answers.values())}",
                    *load.odd[:20], dict(load.answers), running.log_tail())
        verdicts.diag(f"answers: {dict(load.answers)}")
        verdicts.ok(load.answers[201] > 20 and load.answers[200] > 100, "most of what they ask for is done", dict(load.answers))
        verdicts.equal(running.server_pid(), pid, "the server was never started again")
    except service.ServiceError as error:
        verdicts.ok(False, "the service runs", error)
    finally:
        status = running.stop()
    verdicts.equal(status, 0, "the service ends when asked")


def main():
    if os.getuid() != 0:
        tap.skip_all("needs root")
    if not os.access(service.GLOVEBOX, os.X_OK):
        tap.skip_all(f"no program at {service.GLOVEBOX}")
    verdicts = tap.Tap()
    TMP.chmod(0o755)
    shutil.copy(HERE / "suppressions", TMP / "suppressions")
    logs = TMP / "logs"
    try:
        if check_sanitizer(verdicts):
            wrapper = build_wrapper(build_server(), logs)
            glovebox = glovebox_with(wrapper)
            run_api(verdicts, glovebox)
            verdicts.ok(not reports(logs), "no report of the api suite", *show(reports(logs)))
            forget_reports(logs)
            service.GLOVEBOX = glovebox
            run_load(verdicts)
            verdicts.ok(not reports(logs), "no report of the crowd", *show(reports(logs)))
    except subprocess.CalledProcessError as error:
        verdicts.ok(False, "the server can be built with the sanitizer", (error.stdout or "")[-3000:], error.stderr)
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
    verdicts.equal(service.left_behind(), "", "nothing is left behind")
    return verdicts.finish()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Drives a kernel over pipes as the agent does, outside a box: kernels/PROTOCOL.md."""
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import time

HEADER = re.compile(rb"([a-z]{1,15}) (0|[1-9][0-9]{0,7})\n")
PATIENCE = 60  # seconds for anything
END_SECONDS = 30  # much less than what cells leave running, much more than a busy machine needs


class Died(Exception):
    """The kernel ended."""


class Answer:
    """What a cell said. `parts` has everything in order: ("stdout", text), ("result", object) and so on."""

    def __init__(self):
        self.parts = []

    def add(self, kind, value):
        if kind in ("stdout", "stderr") and self.parts and self.parts[-1][0] == kind:
            self.parts[-1] = (kind, self.parts[-1][1] + value)
        else:
            self.parts.append((kind, value))

    def _all(self, kind):
        return [value for name, value in self.parts if name == kind]

    @property
    def stdout(self):
        return b"".join(self._all("stdout")).decode("utf-8", "replace")

    @property
    def stderr(self):
        return b"".join(self._all("stderr")).decode("utf-8", "replace")

    @property
    def results(self):
        return self._all("result")

    @property
    def main(self):
        """The main result, or None."""
        found = [result for result in self.results if result["is_main_result"]]
        return found[0] if found else None

    @property
    def text(self):
        return self.main and self.main.get("text")

    @property
    def error(self):
        found = self._all("error")
        return found[0] if found else None

    @property
    def count(self):
        found = self._all("count")
        return found[0] if found else None

    @property
    def kinds(self):
        return [kind for kind, _ in self.parts]

    def __repr__(self):
        return f"Answer({self.parts!r})"


def _high(fd):
    """The same at a number that is neither 3 nor 4."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 50)
    os.close(fd)
    return moved


def message(word, content=b""):
    return b"%s %d\n%s" % (word.encode(), len(content), content)


def _request(code, base, env, cwd, piece):
    """The messages of one cell."""
    out = [message("base", f"{name}={value}".encode()) for name, value in (base or {}).items()]
    out += [message("env", f"{name}={value}".encode()) for name, value in (env or {}).items()]
    if cwd is not None:
        out.append(message("cwd", cwd.encode()))
    if isinstance(code, str):
        code = code.encode("utf-8", "surrogatepass")
    step = piece or max(len(code or b""), 1)
    out += [message("code", code[at:at + step]) for at in range(0, len(code or b""), step)]
    return b"".join(out + [message("run")])


class Kernel:
    """One context. `argv` is the command of a language file's `kernel` line; use it in a `with`."""

    def __init__(self, argv, env=None, cwd="/"):
        requests_out, self.requests = os.pipe()
        self.events, events_in = os.pipe()
        requests_out, events_in = _high(requests_out), _high(events_in)
        # bash puts the pipes at 3 and 4, which may be in use here, and closes the others.
        # And whoever started us in the background of a shell has made SIGINT ignored.
        wrapper = ["/usr/bin/env", "--default-signal=INT", "bash", "-c",
                   'exec 3<&"$0" 4>&"$1"; a=$0 b=$1; shift; exec {a}<&- {b}>&-; exec "$@"',
                   str(requests_out), str(events_in)]
        self.process = subprocess.Popen(wrapper + list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, pass_fds=(requests_out, events_in), cwd=cwd,
                                        env=env, start_new_session=True)
        os.close(requests_out)
        os.close(events_in)
        self.out, self.err = self.process.stdout.fileno(), self.process.stderr.fileno()
        for fd in (self.events, self.out, self.err):
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
        self.buffer = b""
        self.answer = Answer()
        self.ready = int(self._until("ready"))
        self.greeting = self.answer  # what it said before it was ready
        self.answer = Answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- reading --------------------------------------------------------------------------------------

    def _drain(self):
        """What is printed already stands before the event that was read after it."""
        for fd, kind in ((self.out, "stdout"), (self.err, "stderr")):
            while True:
                try:
                    piece = os.read(fd, 65536)
                except BlockingIOError:
                    break
                if not piece:
                    break
                self.answer.add(kind, piece)

    def _event(self):
        """The next event that has come whole, or None."""
        match = HEADER.match(self.buffer)
        if match is None:
            if len(self.buffer) >= 25:
                raise AssertionError(f"not an event: {self.buffer[:80]!r}")
            return None
        end = match.end() + int(match[2])
        if len(self.buffer) < end:
            return None
        content, self.buffer = self.buffer[match.end():end], self.buffer[end:]
        return match[1].decode(), content

    def _wait(self, deadline):
        readable, _, _ = select.select([self.events, self.out, self.err], [], [], max(deadline - time.monotonic(), 0))
        if not readable:
            raise TimeoutError(f"the kernel says nothing; so far: {self.answer!r:.2000}")
        if self.events not in readable:
            self._drain()
            if self.process.poll() is None:
                return
        try:
            piece = os.read(self.events, 1 << 20)
        except BlockingIOError:
            return
        if not piece:
            self._drain()
            raise Died(f"exit status {self.process.wait(PATIENCE)}; said before: {self.answer!r:.2000}")
        self.buffer += piece

    def _until(self, word, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while True:
            event = self._event()
            if event is None:
                self._wait(deadline)
                continue
            kind, content = event
            if kind != "count":  # nothing that a cell prints comes before its number
                self._drain()
            if kind in ("result", "error"):
                content.decode("ascii")
                self.answer.add(kind, json.loads(content, parse_constant=_refuse))
            elif kind == "count":
                self.answer.add(kind, int(content))
            elif kind not in ("ready", "end"):
                raise AssertionError(f"an unknown event: {kind}")
            if kind == word:
                return content

    # --- asking ---------------------------------------------------------------------------------------

    def begin(self, code=None, base=None, env=None, cwd=None, piece=None):
        """Sends a cell and does not wait for it."""
        self.answer = Answer()
        data = _request(code, base, env, cwd, piece)
        while data:
            data = data[os.write(self.requests, data):]

    def end(self, patience=PATIENCE):
        """Waits for the end of the cell and returns what it said."""
        self._until("end", patience)
        return self.answer

    def cell(self, code=None, patience=PATIENCE, **more):
        self.begin(code, **more)
        return self.end(patience)

    def wait_begun(self):
        """Until the cell runs: it has its number."""
        self._until("count")

    def wait_output(self, text, patience=PATIENCE):
        """Until the running cell has printed this."""
        deadline = time.monotonic() + patience
        while text not in self.answer.stdout + self.answer.stderr:
            self._wait(deadline)

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        """Ends it as the agent does: end of file, and later by force, which its status shows."""
        os.close(self.requests)
        os.close(self.events)
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()
        finally:
            self.process.stdout.close()
            self.process.stderr.close()


def _refuse(constant):
    raise AssertionError(f"{constant} is not JSON")

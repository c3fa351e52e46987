# SPDX-License-Identifier: Apache-2.0
"""What the zygote does, without a sandbox: forks.py KERNEL.PY PACKAGES COUNT loads the kernel once and forks contexts. Each
runs a cell that says what it drew at random, the last one when it has waited for it so long that it has prepared itself.
Prints a JSON object about them and about the process they come from."""
import importlib.util
import json
import os
import sys
import time

LONG = 1.0  # seconds: longer than a context waits until it prepares itself, and than it keeps half a line to itself

CELL = """
import json, os, random, sys, tempfile
drawn = [random.random(), next(tempfile._get_candidate_names())]
if "numpy" in sys.modules:
    drawn.append(sys.modules["numpy"].random.rand())
with open("/proc/self/smaps_rollup", encoding="ascii") as file:
    private = [int(line.split()[1]) for line in file if line.startswith("Private_Dirty")][0]
print(json.dumps({"private_kib": private, "drawn": drawn, "A": os.environ.get("A"), "B": os.environ.get("B"), "names": sorted(globals())}))
"""


def load(path, packages):
    spec = importlib.util.spec_from_file_location("kernel", path)
    kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    kernel.load(packages)
    return kernel


def read_packets(fd):
    """Until the end, each piece as it was written."""
    return list(iter(lambda: os.read(fd, 65536), b""))


def run_child(kernel, wait):
    """A forked context and the output of its first cell."""
    requests, to_kernel = os.pipe()
    from_kernel, events = os.pipe()
    output, out = os.pipe2(os.O_DIRECT)
    if os.fork() == 0:
        os.dup2(out, 1)
        for fd in (to_kernel, from_kernel, output, out):
            os.close(fd)
        kernel.after_fork()
        kernel.serve(requests, events)
    for fd in (requests, events, out):
        os.close(fd)
    time.sleep(wait)
    code = CELL.encode()
    os.write(to_kernel, b"code %d\n%srun 0\n" % (len(code), code))
    os.close(to_kernel)
    printed = read_packets(output)
    os.close(output)
    with os.fdopen(from_kernel, "rb") as said:
        return {**json.loads(b"".join(printed) or "{}"), "pieces": len(printed), "said": said.read().decode()}


def main():
    path, packages, count = sys.argv[1], sys.argv[2].split(), int(sys.argv[3])
    os.environ["A"] = "ours"
    before = set(os.listdir("/proc/self/fd"))
    kernel = load(path, packages)
    kernel.before_forks({"B": "theirs"})
    about = {"threads": len(os.listdir("/proc/self/task")), "descriptors": sorted(set(os.listdir("/proc/self/fd")) - before)}
    about["children"] = [run_child(kernel, LONG if last else 0) for last in [False] * (count - 1) + [True]]
    os.write(1, json.dumps(about).encode())


main()

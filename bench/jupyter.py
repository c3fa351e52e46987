# SPDX-License-Identifier: Apache-2.0
"""What others do: an ipykernel started by jupyter_client, without any sandbox. Prints JSON: milliseconds.

    jupyter.py STARTS CELLS
"""
import json
import sys
import time

from jupyter_client.manager import start_new_kernel

LIMIT = 60


def printed(client, code):
    """Runs a cell and waits until its first line of output is here."""
    client.execute(code)
    while client.get_iopub_msg(timeout=LIMIT)["msg_type"] != "stream":
        pass


def idle(client):
    while True:
        message = client.get_iopub_msg(timeout=LIMIT)
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return


def main():
    starts, cells = (int(text) for text in sys.argv[1:3])
    result = {"start": [], "cell": []}
    for number in range(starts):
        before = time.perf_counter()
        manager, client = start_new_kernel(startup_timeout=LIMIT)
        printed(client, "print(1)")
        result["start"].append((time.perf_counter() - before) * 1000)
        idle(client)
        for _ in range(cells if number == 0 else 0):
            before = time.perf_counter()
            printed(client, "print(1)")
            idle(client)
            result["cell"].append((time.perf_counter() - before) * 1000)
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()

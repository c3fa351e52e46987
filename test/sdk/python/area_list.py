# SPDX-License-Identifier: Apache-2.0
"""Listing: filters, order, pages."""
import datetime

import e2b
from e2b import Sandbox
from harness import box


def test_list():
    """list(): filters, order and pages"""
    mark = f"py-{datetime.datetime.now().timestamp()}"
    made = [box(metadata={"mark": mark, "n 1": f"é/{i}"}).sandbox_id for i in range(3)]
    query = e2b.SandboxQuery(metadata={"mark": mark})

    def everything(**opts):
        paginator, found = Sandbox.list(**opts), []
        while paginator.has_next:
            found += [item.sandbox_id for item in paginator.next_items()]
        return found
    assert everything(query=query) == made[::-1]
    assert everything(query=query, limit=1) == made[::-1]
    assert everything(query=query, limit=2, order="asc") == made
    assert everything(query=e2b.SandboxQuery(metadata={"n 1": "é/1", "mark": mark})) == [made[1]]
    Sandbox.pause(made[0])
    assert everything(query=e2b.SandboxQuery(metadata={"mark": mark}, state=[e2b.SandboxState.PAUSED])) == [made[0]]

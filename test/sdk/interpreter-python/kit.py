# SPDX-License-Identifier: Apache-2.0
"""What the areas have in common: a cell, what it printed, what it gave."""
import e2b_code_interpreter as ci
from harness import box, common


def run(code, sandbox=None, **opts):
    """A cell that must do without an error."""
    execution = (sandbox or common()).run_code(code, **opts)
    assert execution.error is None, f"{execution.error.name}: {execution.error.value}"
    return execution


def output(code, sandbox=None, **opts):
    return "".join(run(code, sandbox, **opts).logs.stdout)


def value(code, sandbox=None, **opts):
    return run(code, sandbox, **opts).text


def result(code, sandbox=None, **opts):
    """The only result of a cell."""
    results = run(code, sandbox, **opts).results
    assert len(results) == 1, results
    return results[0]


def fails(code, name, sandbox=None, **opts):
    """The error of a cell that must end with one."""
    error = (sandbox or common()).run_code(code, **opts).error
    assert error is not None, "the cell ends with an error"
    assert name is None or error.name == name, f"{error.name}: {error.value}"
    assert all(isinstance(part, str) for part in (error.name, error.value, error.traceback))
    return error


__all__ = ["box", "ci", "common", "fails", "output", "result", "run", "value"]

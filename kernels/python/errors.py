# SPDX-License-Identifier: Apache-2.0
"""Exceptions in words, for whatever IPython has no words for."""
import traceback

OURS = ("glovebox_kernel", "IPython")


def name_of(kind):
    """An error of syntax is called so, whichever private kind of it the parser has."""
    return "SyntaxError" if issubclass(kind, SyntaxError) and kind.__name__.startswith("_") else kind.__name__


def text_of(value):
    """str() of an exception, which may have its own idea of it."""
    try:
        return str(value)
    except Exception:  # pylint: disable=broad-except
        return f"<unprintable {type(value).__name__} object>"


def _where(problem):
    """Its traceback without the frames that led to the cell, of which the cell knows nothing."""
    place = problem.__traceback__
    while place is not None and str(place.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in OURS:
        place = place.tb_next
    return place


def describe(problem):
    """An exception as (name, value, traceback)."""
    try:
        text = "".join(traceback.format_exception(type(problem), problem, _where(problem)))
    except Exception:  # pylint: disable=broad-except
        text = ""
    return (name_of(type(problem)), text_of(problem), text)


def is_group(problem):
    """Whether it is, or came while handling, a group of exceptions."""
    for _ in range(100):
        if problem is None:
            return False
        if type(problem).__name__ in ("ExceptionGroup", "BaseExceptionGroup"):
            return True
        problem = problem.__context__
    return False

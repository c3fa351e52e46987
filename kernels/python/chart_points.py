# SPDX-License-Identifier: Apache-2.0
"""Lines and scatter plots, and the scales of their axes."""
import datetime
import re

import numpy
from matplotlib import dates
from matplotlib.lines import Line2D

DEFAULT_LABEL = re.compile(r"_(?:child|line)(\d+)")


def is_grid_line(line):
    """A line between two points that is level or upright: axhline(), axvline(), a grid."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and bool(x[0] == x[1] or y[0] == y[1])


# --- axes -----------------------------------------------------------------------------------------------


def _converter(axis):
    """Newer versions have a function for it, and warn about the attribute."""
    get = getattr(axis, "get_converter", None)
    return get() if get is not None else axis.converter


def _is_date(axis):
    kinds = (dates.DateConverter, dates._SwitchableDateConverter)  # pylint: disable=protected-access
    return isinstance(_converter(axis), kinds)


def _categories(axis):
    """The names on an axis of strings by their position, or {}."""
    mapping = getattr(axis.units, "_mapping", None)
    return {position: name for name, position in mapping.items()} if mapping else {}


def _scale(axis, ticks, labels):
    if _is_date(axis):
        return "datetime"
    if axis.get_scale() != "linear":
        return axis.get_scale()
    # Names given by xticks() to 0, 1, 2 … make an axis as categorical as strings do.
    is_named = labels and all(tick == i and label != str(i) for i, (tick, label) in enumerate(zip(ticks, labels)))
    return "categorical" if _categories(axis) or is_named else "linear"


def scale_of(axis, name):
    """Ticks, their labels and the scale; `name` is x or y."""
    places = axis.get_ticklocs()
    labels = [label.get_text() for label in axis.get_ticklabels()]
    if _is_date(axis):
        ticks = [dates.num2date(place).isoformat() for place in places]
    else:
        ticks = [float(place) for place in places]
    return {name + "_ticks": ticks, name + "_tick_labels": labels, name + "_scale": _scale(axis, ticks, labels)}


# --- points ---------------------------------------------------------------------------------------------


def _date_of(number):
    """A date as matplotlib stores it: a number of days."""
    return dates.num2date(number).replace(tzinfo=None).isoformat()


def _coordinate(value):
    """A number, a category, or a date in ISO form; null where the line is broken."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime.date):
        return None if value != value else value.isoformat()
    if isinstance(value, numpy.datetime64):
        return None if numpy.isnat(value) else str(value.astype("datetime64[s]"))
    if value is None or numpy.ma.is_masked(value):
        return None
    number = float(value)
    return number if number - number == 0 else None


def _column(values, axis):
    """The coordinates of one axis. Numbers mean dates or categories on an axis of those."""
    values = [_coordinate(value) for value in values]
    if _is_date(axis):
        return [_date_of(value) if isinstance(value, float) else value for value in values]
    names = _categories(axis)
    return [names.get(value, value) for value in values] if names else values


def _points(axes, x, y):
    return [list(point) for point in zip(_column(x, axes.xaxis), _column(y, axes.yaxis))]


def lines(axes, artists):
    found = []
    for line in artists:
        if is_grid_line(line):
            continue
        label = str(line.get_label())
        unnamed = DEFAULT_LABEL.fullmatch(label)
        found.append({"label": f"Line {unnamed[1]}" if unnamed else label,
                      "points": _points(axes, line.get_xdata(), line.get_ydata())})
    return found


def scatters(axes, artists):
    found = []
    for collection in artists:
        if isinstance(collection, Line2D):
            continue
        offsets = collection.get_offsets()
        found.append({"label": str(collection.get_label()), "points": _points(axes, offsets[:, 0], offsets[:, 1])})
    return found

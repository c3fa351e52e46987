# SPDX-License-Identifier: Apache-2.0
"""What a figure of matplotlib says, as data: the charts of E2B's code interpreter.

A chart is read from what was drawn, the artists of an Axes, since how it was drawn is forgotten by then. What
is not recognised is "unknown" with its title; a figure on which nothing is drawn is {}."""
import re

from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, Wedge

from glovebox_kernel import chart_bars, chart_boxes, chart_points

# In the words of a label: "Time (s)", "Time [s]".
UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


def extract(figure):
    """The chart of a figure. Never fails: whatever cannot be read has no chart, but it has its picture."""
    try:
        return _extract(figure)
    except Exception:  # pylint: disable=broad-except
        return {}


def _extract(figure):
    axes = figure.get_axes()
    if not any(one.has_data() or one.patches for one in axes):
        return {}
    if len(axes) == 1:
        return _chart(axes[0])
    suptitle = getattr(figure, "_suptitle", None)
    title = suptitle.get_text() if suptitle is not None else None
    return {"type": "superchart", "title": title or None, "elements": [_chart(one) for one in axes]}


def _chart(axes):
    artists = _artists(axes)
    kind = _kind(axes, artists)
    chart = {"type": kind, "title": axes.get_title() or None}
    if kind in ("line", "scatter"):
        chart.update(_labels(axes))
        chart.update(chart_points.scale_of(axes.xaxis, "x"))
        chart.update(chart_points.scale_of(axes.yaxis, "y"))
        chart["elements"] = (chart_points.lines if kind == "line" else chart_points.scatters)(axes, artists)
    elif kind == "bar":
        chart.update(_labels(axes, chart_bars.is_horizontal(axes)))
        chart["elements"] = chart_bars.bars(axes)
    elif kind == "box_and_whisker":
        boxes, is_horizontal = chart_boxes.boxes(axes)
        chart.update(_labels(axes, is_horizontal))
        chart["elements"] = boxes
    elif kind == "pie":
        chart["elements"] = [_wedge(wedge) for wedge in axes.patches if isinstance(wedge, Wedge)]
    else:
        chart["elements"] = []
    return chart


def _artists(axes):
    """What was drawn on it, without texts and the whiskers of error bars."""
    ignored = set()
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            _, caps, bars = container.lines
            ignored.update(caps, bars)
    drawn = [*axes.lines, *axes.patches, *axes.collections, *axes.images, *axes.tables, *axes.artists]
    return [artist for artist in drawn if artist not in ignored]


def _kind(axes, artists):
    if chart_boxes.is_box_plot(axes, artists):
        return "box_and_whisker"
    if all(isinstance(artist, Line2D) for artist in artists):
        return "line"
    artists = [artist for artist in artists if not (isinstance(artist, Line2D) and chart_points.is_grid_line(artist))]
    for kind, classes in (("scatter", PathCollection), ("pie", Wedge), ("bar", Rectangle)):
        if all(isinstance(artist, classes) for artist in artists):
            break
    else:
        return "unknown"
    if kind == "bar" and not any(isinstance(container, BarContainer) for container in axes.containers):
        return "unknown"
    return kind


def _unit(label):
    match = UNIT.search(label)
    return (match[1] or match[2] or None) if match else None


def _labels(axes, is_swapped=False):
    """Labels and units of both axes. Of horizontal bars x is what the bars stand for, as of vertical ones."""
    x, y = axes.get_xlabel(), axes.get_ylabel()
    if is_swapped:
        x, y = y, x
    return {"x_label": x or None, "y_label": y or None, "x_unit": _unit(x), "y_unit": _unit(y)}


def _wedge(wedge):
    """Its angles are floats of 32 bits, good for four decimals."""
    angle = abs(float(wedge.theta2) - float(wedge.theta1))
    return {"label": str(wedge.get_label()), "angle": round(angle, 4), "radius": float(wedge.r)}

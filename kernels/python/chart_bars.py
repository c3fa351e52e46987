# SPDX-License-Identifier: Apache-2.0
"""Bars: vertical, horizontal, grouped, stacked, and histograms."""
import re

from matplotlib.container import BarContainer
from matplotlib.ticker import FixedFormatter, FuncFormatter

DEFAULT_LABEL = re.compile(r"_container(\d+)")


def _containers(axes):
    return [container for container in axes.containers if isinstance(container, BarContainer) and container.patches]


def _lies(container):
    """Whether its bars are horizontal. Old versions do not say: bars of one thickness and unlike lengths do."""
    if getattr(container, "orientation", None) is not None:
        return container.orientation == "horizontal"
    heights = {round(bar.get_height(), 9) for bar in container.patches}
    widths = {round(bar.get_width(), 9) for bar in container.patches}
    return len(heights) == 1 and len(widths) > 1


def is_horizontal(axes):
    return all(_lies(container) for container in _containers(axes))


def names_of(axis):
    """[(position, name)] of an axis whose ticks have names, of strings or given by hand; of numbers: []."""
    mapping = getattr(axis.units, "_mapping", None)
    if mapping:
        return [(float(position), str(name)) for name, position in mapping.items()]
    formatter = axis.get_major_formatter()
    if not isinstance(formatter, (FixedFormatter, FuncFormatter)):
        return []
    labels = [label.get_text() for label in axis.get_ticklabels()]
    return [(float(place), label) for place, label in zip(axis.get_ticklocs(), labels)]


def name_at(names, position):
    """The name nearest to a position, if none lies between: bars of a group stand beside their tick. Otherwise
    the position itself."""
    if names:
        places = sorted(place for place, _ in names)
        gaps = [after - before for before, after in zip(places, places[1:]) if after > before]
        place, name = min(names, key=lambda item: abs(item[0] - position))
        if abs(place - position) <= (min(gaps) / 2 if gaps else 0.5):
            return name
    return f"{position:.10g}"


def _bars_of(axes, container):
    label = str(container.get_label())
    unnamed = DEFAULT_LABEL.fullmatch(label)
    group = f"Group {unnamed[1]}" if unnamed else label
    lies = _lies(container)
    names = names_of(axes.yaxis if lies else axes.xaxis)
    for bar in container.patches:
        if lies:
            position, value = bar.get_y() + bar.get_height() / 2, bar.get_width()
        else:
            position, value = bar.get_x() + bar.get_width() / 2, bar.get_height()
        yield {"label": name_at(names, float(position)), "group": group, "value": float(value)}


def bars(axes):
    return [bar for container in _containers(axes) for bar in _bars_of(axes, container)]

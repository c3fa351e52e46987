# SPDX-License-Identifier: Apache-2.0
"""Box plots. Matplotlib draws a box as a patch or as a closed line, with two whiskers, two caps, a median and
the outliers as lines of their own; what belongs together is known by where it is."""
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch

from glovebox_kernel import chart_bars

TOLERANCE = 1e-9


class Box:
    """`low` and `high` are its quartiles, `left` and `right` its sides, whichever way it lies."""

    def __init__(self, across, along):
        self.left, self.right = min(across), max(across)
        self.low, self.high = min(along), max(along)
        self.minimum = self.maximum = None
        self._level = (False, 0, None)  # how good a median it would be, and where it is
        self._marks = []

    def _holds(self, across):
        slack = TOLERANCE * max(abs(self.left), abs(self.right), 1)
        return all(self.left - slack <= value <= self.right + slack for value in across)

    def take(self, across, along, has_marker):
        """Whether a line belongs to this box; remembers what it says."""
        if not across or not self._holds(across):
            return False
        if has_marker:
            self._marks = along  # of several the last: outliers are drawn after a mean
        elif len(along) == 2 and _same(across[0], across[1]):
            self._take_whisker(min(along), max(along))
        elif len(along) == 2 and _same(along[0], along[1]):
            self._take_level(along[0], abs(across[1] - across[0]))
        return True

    def _take_level(self, value, width):
        """A median or a cap. A median lies inside; where a cap lies on an edge of the box, it is the wider."""
        if self.low - _slack(self.low) <= value <= self.high + _slack(self.high):
            is_inside = not _same(value, self.low) and not _same(value, self.high)
            if (is_inside, width) >= self._level[:2]:
                self._level = (is_inside, width, value)

    def _take_whisker(self, low, high):
        if _same(high, self.low) and self.minimum is None:
            self.minimum = low
        elif _same(low, self.high):
            self.maximum = high

    def element(self, label):
        """A box without whiskers ends where it ends. A mark between the whiskers is the mean."""
        low = self.low if self.minimum is None else self.minimum
        high = self.high if self.maximum is None else self.maximum
        return {"label": label, "min": low, "first_quartile": self.low, "median": self._level[2],
                "third_quartile": self.high, "max": high,
                "outliers": [mark for mark in self._marks if not low <= mark <= high]}


def _slack(value):
    return TOLERANCE * max(abs(value), 1)


def _same(a, b):
    return abs(a - b) <= _slack(a)


def _numbers(line):
    """The points of a line as two lists of numbers, or None."""
    try:
        x, y = line.get_xydata().T.tolist()
    except (TypeError, ValueError, AttributeError):
        return None
    return x, y


def _is_closed(x, y):
    """A closed line with four corners, or a notched one with ten."""
    return len(x) in (5, 11) and _same(x[0], x[-1]) and _same(y[0], y[-1]) and len(set(y)) > 1 and len(set(x)) > 1


def _corners(x, y):
    """Two that are opposite. A notch may reach beyond the quartiles, so the extremes would not do."""
    other = 2 if len(x) <= 6 else 5
    return (x[0], x[other]), (y[0], y[other])


def _outlines(axes):
    """The boxes as pairs of corners. Patches, if there are any: a plot drawn over another one counts once."""
    patches = [patch.get_path().vertices for patch in axes.patches if isinstance(patch, PathPatch)]
    if patches:
        return [_corners(*vertices.T.tolist()) for vertices in patches if len(vertices) >= 5]
    points = (_numbers(line) for line in axes.get_lines() if not _is_dotted(line))
    return [_corners(*point) for point in points if point is not None and _is_closed(*point)]


def _is_dotted(line):
    """Outliers are markers without a line between them."""
    return line.get_linestyle() in ("None", "", " ", "none")


def _whiskers(axes, outlines):
    """How many lines end in the middle of a side of a box: (upright, level)."""
    upright = level = 0
    for line in axes.get_lines():
        points = _numbers(line)
        if points is None or len(points[0]) != 2:
            continue
        (x1, x2), (y1, y2) = points
        for x, y in outlines:
            if _same(x1, x2) and _same(x1, (min(x) + max(x)) / 2) and _touches((y1, y2), y):
                upright += 1
            if _same(y1, y2) and _same(y1, (min(y) + max(y)) / 2) and _touches((x1, x2), x):
                level += 1
    return upright, level


def _touches(ends, side):
    low, high = min(ends), max(ends)
    return _same(high, min(side)) or _same(low, max(side))


def is_box_plot(axes, artists):
    """Only lines and patches, and boxes among them that have whiskers."""
    if not artists or not all(isinstance(artist, (Line2D, PathPatch)) for artist in artists):
        return False
    outlines = _outlines(axes)
    return bool(outlines) and any(_whiskers(axes, outlines))


def boxes(axes):
    """The elements of a box plot, and whether they lie."""
    outlines = _outlines(axes)
    upright, level = _whiskers(axes, outlines)
    lies = level > upright
    found = [Box(y, x) if lies else Box(x, y) for x, y in outlines]
    for line in axes.get_lines():
        points = _numbers(line)
        if points is None or len(points[0]) in (5, 11) and not _is_dotted(line):
            continue
        across, along = (points[1], points[0]) if lies else points
        for box in found:
            if box.take(across, along, _is_dotted(line)):
                break
    names = chart_bars.names_of(axes.yaxis if lies else axes.xaxis)
    return [box.element(chart_bars.name_at(names, (box.left + box.right) / 2)) for box in found], lies

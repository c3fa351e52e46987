# SPDX-License-Identifier: Apache-2.0
"""Figures of matplotlib as data: every kind of chart and every scale, exactly."""
from cases_python import check, command, need  # noqa: F401  pylint: disable=unused-import

HEAD = "import datetime\nimport matplotlib\nimport matplotlib.pyplot as plt\nimport numpy as np\n"


def chart_of(world, code):
    need(world.kernel, "matplotlib")
    answer = world.kernel.cell(HEAD + code + "\nplt.show()")
    assert answer.error is None and len(answer.results) == 1, answer
    return answer.results[0]["chart"]


def labels(x=None, y=None, x_unit=None, y_unit=None):
    return {"x_label": x, "y_label": y, "x_unit": x_unit, "y_unit": y_unit}


def without_ticks(chart):
    return {name: value for name, value in chart.items() if "_tick" not in name}


# --- lines and scatter plots ----------------------------------------------------------------------------


def test_line(world):
    """lines, with names, labels, units and ticks; lines across the figure are none"""
    chart = chart_of(world, "plt.plot([0, 1, 2], [0, 1, 4], label='squares')\nplt.plot([2, 1], [2, float('nan')])\n"
                            "plt.axhline(1)\nplt.grid()\nplt.xticks([0, 1, 2])\nplt.yticks([0, 4], ['none', 'all'])\n"
                            "plt.title('T')\nplt.xlabel('Time (s)')\nplt.ylabel('Length [m]')")
    check(chart, {"type": "line", "title": "T", **labels("Time (s)", "Length [m]", "s", "m"),
                  "x_ticks": [0.0, 1.0, 2.0], "x_tick_labels": ["0", "1", "2"], "x_scale": "linear",
                  "y_ticks": [0.0, 4.0], "y_tick_labels": ["none", "all"], "y_scale": "linear",
                  "elements": [{"label": "squares", "points": [[0.0, 0.0], [1.0, 1.0], [2.0, 4.0]]},
                               {"label": "Line 1", "points": [[2.0, 2.0], [1.0, None]]}]})


def test_scatter(world):
    """scatter plots"""
    chart = chart_of(world, "plt.scatter([1, 2], [3, 4], label='a')\nplt.scatter([5], [6])\nplt.axvline(1)")
    check(without_ticks(chart), {"type": "scatter", "title": None, **labels(), "x_scale": "linear", "y_scale": "linear",
                                 "elements": [{"label": "a", "points": [[1.0, 3.0], [2.0, 4.0]]},
                                              {"label": "_child1", "points": [[5.0, 6.0]]}]})


def test_dates(world):
    """dates in ISO form, of lines and of scatter plots"""
    chart = chart_of(world, "plt.plot([datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)], [1, 2])")
    check((chart["x_scale"], chart["y_scale"]), ("datetime", "linear"))
    check(chart["elements"][0]["points"], [["2024-01-01", 1.0], ["2024-01-03", 2.0]])
    check(chart["x_ticks"][0], "2024-01-01T00:00:00+00:00")
    chart = chart_of(world, "plt.plot(np.array(['2024-01-01T10:00', '2024-02-01'], 'datetime64[m]'), [1, 2])")
    check(chart["elements"][0]["points"], [["2024-01-01T10:00:00", 1.0], ["2024-02-01T00:00:00", 2.0]])
    chart = chart_of(world, "plt.scatter([datetime.datetime(2024, 1, 1, 12), datetime.datetime(2024, 1, 3)], [1, 2])")
    check((chart["x_scale"], chart["elements"][0]["points"]), ("datetime", [["2024-01-01T12:00:00", 1.0], ["2024-01-03T00:00:00", 2.0]]))


def test_pandas_dates(world):
    """dates of pandas"""
    need(world.kernel, "pandas")
    chart = chart_of(world, "import pandas as pd\nplt.plot(pd.date_range('2024-01-01', periods=2), [1, 2])")
    check(chart["elements"][0]["points"], [["2024-01-01T00:00:00", 1.0], ["2024-01-02T00:00:00", 2.0]])


def test_categories(world):
    """categories, of strings and by names of ticks"""
    chart = chart_of(world, "plt.plot([1, 2], ['A', 'B'])")
    check((chart["x_scale"], chart["y_scale"], chart["y_ticks"], chart["y_tick_labels"]), ("linear", "categorical", [0.0, 1.0], ["A", "B"]))
    check(chart["elements"][0]["points"], [[1.0, "A"], [2.0, "B"]])
    chart = chart_of(world, "plt.scatter(['A', 'B'], [1, 2])")
    check((chart["x_scale"], chart["elements"][0]["points"]), ("categorical", [["A", 1.0], ["B", 2.0]]))
    chart = chart_of(world, "plt.plot([0, 1], [5, 6])\nplt.xticks([0, 1], ['first', 'second'])")
    check((chart["x_scale"], chart["x_tick_labels"]), ("categorical", ["first", "second"]))


def test_scales(world):
    """every scale has its name"""
    for code, scale in (("'linear'", "linear"), ("'log'", "log"), ("'symlog'", "symlog"), ("'logit'", "logit"), ("'asinh'", "asinh"),
                        ("'function', functions=(lambda v: v * 2, lambda v: v / 2)", "function"),
                        ("'functionlog', functions=(lambda v: v * 2, lambda v: v / 2)", "functionlog")):
        chart = chart_of(world, f"plt.plot([0.1, 0.2], [0.3, 0.4])\nplt.yscale({code})")
        check((chart["type"], chart["x_scale"], chart["y_scale"]), ("line", "linear", scale))


def test_error_bars(world):
    """error bars do not hide what they belong to"""
    chart = chart_of(world, "plt.errorbar([1, 2], [3, 4], yerr=0.5, capsize=2, label='e')")
    check((chart["type"], [element["points"] for element in chart["elements"]]), ("line", [[[1.0, 3.0], [2.0, 4.0]]]))
    check(chart_of(world, "plt.bar(['a'], [2], yerr=[0.1])")["elements"][0]["value"], 2.0)


# --- bars -----------------------------------------------------------------------------------------------


def bar(label, group, value):
    return {"label": label, "group": group, "value": value}


def test_bars(world):
    """vertical bars, with and without the name of a group; one bar and bars of one height stand too"""
    chart = chart_of(world, "plt.bar(['a', 'b'], [1, 2], label='Sold')\nplt.xlabel('Who')\nplt.ylabel('How much (kg)')\nplt.title('B')")
    check(chart, {"type": "bar", "title": "B", **labels("Who", "How much (kg)", None, "kg"),
                  "elements": [bar("a", "Sold", 1.0), bar("b", "Sold", 2.0)]})
    check(chart_of(world, "plt.bar(['a'], [3])")["elements"], [bar("a", "Group 0", 3.0)])
    check(chart_of(world, "plt.bar([10, 20], [5, 5])")["elements"], [bar("10", "Group 0", 5.0), bar("20", "Group 0", 5.0)])


def test_horizontal_bars(world):
    """of horizontal bars x is what they stand for"""
    chart = chart_of(world, "plt.barh(['a', 'b'], [1, 2])\nplt.xlabel('How much (kg)')\nplt.ylabel('Who')")
    check(chart, {"type": "bar", "title": None, **labels("Who", "How much (kg)", None, "kg"),
                  "elements": [bar("a", "Group 0", 1.0), bar("b", "Group 0", 2.0)]})


def test_grouped_bars(world):
    """groups stand beside their ticks"""
    chart = chart_of(world, "x = np.arange(2)\nplt.bar(x - 0.2, [1, 2], 0.4, label='old')\nplt.bar(x + 0.2, [3, 4], 0.4, label='new')\n"
                            "plt.xticks(x, ['A', 'B'])\nplt.legend()")
    check(chart["elements"], [bar("A", "old", 1.0), bar("B", "old", 2.0), bar("A", "new", 3.0), bar("B", "new", 4.0)])


def test_stacked_bars(world):
    """stacked bars have their own heights, and their labels do no harm"""
    chart = chart_of(world, "plt.bar(['a', 'b'], [1, 2])\ntop = plt.bar(['a', 'b'], [3, 4], bottom=[1, 2])\nplt.bar_label(top)")
    check(chart["elements"], [bar("a", "Group 0", 1.0), bar("b", "Group 0", 2.0), bar("a", "Group 1", 3.0), bar("b", "Group 1", 4.0)])


def test_histogram(world):
    """a histogram is bars at the middles of its bins"""
    chart = chart_of(world, "plt.hist([1, 2, 2, 4], bins=[1, 2, 3, 4])")
    check(chart["elements"], [bar("1.5", "Group 0", 1.0), bar("2.5", "Group 0", 2.0), bar("3.5", "Group 0", 1.0)])


# --- the others -----------------------------------------------------------------------------------------


def test_pie(world):
    """pies"""
    chart = chart_of(world, "plt.pie([10, 20, 70], labels=['a', 'b', 'c'], autopct='%1.1f%%', radius=2)\nplt.title('P')")
    check(chart, {"type": "pie", "title": "P", "elements": [{"label": "a", "angle": 36.0, "radius": 2.0},
                                                            {"label": "b", "angle": 72.0, "radius": 2.0},
                                                            {"label": "c", "angle": 252.0, "radius": 2.0}]})


def box(label, low, first, median, third, high, *outliers):
    return {"label": label, "min": low, "first_quartile": first, "median": median, "third_quartile": third, "max": high,
            "outliers": list(outliers)}


BOXES = "[[1, 2, 3, 4, 5], [2, 4, 6, 8, 30]]"
EXPECTED = [box("A", 1.0, 2.0, 3.0, 4.0, 5.0), box("B", 2.0, 4.0, 6.0, 8.0, 8.0, 30.0)]


def test_boxes(world):
    """box plots: patches, lines, notches, means, drawn twice, lying"""
    names = "plt.xticks([1, 2], ['A', 'B'])\nplt.xlabel('Class')"
    for options in ("patch_artist=True", "", "showmeans=True", "notch=True, patch_artist=True"):
        chart = chart_of(world, f"plt.boxplot({BOXES}, {options})\n{names}")
        check((options, chart), (options, {"type": "box_and_whisker", "title": None, **labels("Class"), "elements": EXPECTED}))
    chart = chart_of(world, f"plt.boxplot({BOXES})\nplt.boxplot({BOXES}, patch_artist=True)\n{names}")
    check(chart["elements"], EXPECTED)
    chart = chart_of(world, f"plt.boxplot({BOXES}, vert=False)\nplt.yticks([1, 2], ['A', 'B'])\nplt.ylabel('Class')")
    check(chart, {"type": "box_and_whisker", "title": None, **labels("Class"), "elements": EXPECTED})


def test_short_whiskers(world):
    """a cap on the edge of a box is not its median"""
    chart = chart_of(world, "plt.boxplot([[1, 80, 85, 90]])")
    check(chart["elements"], [box("1", 60.25, 60.25, 82.5, 86.25, 90.0, 1.0)])


def test_superchart(world):
    """several axes are a chart of charts"""
    chart = chart_of(world, "f, (a, b) = plt.subplots(1, 2)\nf.suptitle('All')\na.plot([1, 2])\na.set_title('one')\nb.pie([1])")
    check((chart["type"], chart["title"], [element["type"] for element in chart["elements"]]), ("superchart", "All", ["line", "pie"]))
    check((chart["elements"][0]["title"], chart["elements"][0]["elements"][0]["points"]), ("one", [[0.0, 1.0], [1.0, 2.0]]))
    check(chart_of(world, "f, axes = plt.subplots(2)\naxes[0].plot([1])")["title"], None)


def test_unknown(world):
    """what is not known has its title and nothing else"""
    for code in ("plt.gca().add_artist(plt.Circle((0, 0), 1))", "plt.imshow([[1, 2], [3, 4]])", "plt.plot([1])\nplt.fill_between([0, 1], [1, 2])",
                 "plt.axvspan(0, 1)"):
        check(chart_of(world, code + "\nplt.title('U')"), {"type": "unknown", "title": "U", "elements": []})


def test_blank(world):
    """a blank figure has an empty chart"""
    check(chart_of(world, "plt.subplots()"), {})
    check(chart_of(world, "plt.subplots(2, 2)"), {})


def test_hostile(world):
    """a figure that cannot be read has an empty chart and its picture"""
    need(world.kernel, "matplotlib")
    answer = world.kernel.cell(HEAD + "line, = plt.plot([1, 2])\nline.get_label = lambda: 1 / 0\nplt.show()")
    check((answer.error, answer.results[0]["chart"], "png" in answer.results[0]), (None, {}, True))

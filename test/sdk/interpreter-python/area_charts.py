# SPDX-License-Identifier: Apache-2.0
"""The data of charts, as the classes of the package read it."""
import json

from e2b_code_interpreter import charts
from kit import run

SETUP = "import datetime, json\nimport matplotlib.pyplot as plt\nimport numpy as np\nfrom matplotlib import cbook\n"


def draw(code):
    """The chart, and what the cell printed, as JSON."""
    execution = run(f"{SETUP}{code}\nplt.show()")
    shown = [each for each in execution.results if each.png]
    assert len(shown) == 1, execution.results
    printed = "".join(execution.logs.stdout)
    return shown[0].chart, json.loads(printed) if printed else None


def close(got, want):
    assert len(got) == len(want), (got, want)
    assert all(abs(a - b) <= 1e-9 * max(1, abs(b)) for a, b in zip(got, want)), (got, want)


def test_line():
    """line"""
    chart, truth = draw("x = np.linspace(0, 10, 50); lines = plt.plot(x, np.sin(x), label='sin') + plt.plot(x, np.cos(x), label='cos')\n"
                        "plt.xlabel('Time (s)'); plt.ylabel('Size [m]'); plt.title('Waves')\n"
                        "print(json.dumps([line.get_xydata().tolist() for line in lines]))")
    assert isinstance(chart, charts.LineChart)
    assert (chart.title, chart.x_label, chart.x_unit, chart.y_label, chart.y_unit) == ("Waves", "Time (s)", "s", "Size [m]", "m")
    assert (chart.x_scale, chart.y_scale) == (charts.ScaleType.LINEAR, charts.ScaleType.LINEAR)
    assert [each.label for each in chart.elements] == ["sin", "cos"]
    for element, points in zip(chart.elements, truth):
        close([number for point in element.points for number in point], [number for point in points for number in point])


def test_scatter():
    """scatter"""
    chart, _ = draw("plt.scatter([1, 2], [3, 4], label='dots')")
    assert isinstance(chart, charts.ScatterChart)
    assert [(each.label, each.points) for each in chart.elements] == [("dots", [(1, 3), (2, 4)])]


def test_bar():
    """bar: vertical, horizontal, in groups"""
    chart, _ = draw("plt.bar(['a', 'b'], [1, 2.5], label='g'); plt.xlabel('X'); plt.ylabel('Y')")
    assert isinstance(chart, charts.BarChart) and (chart.x_label, chart.y_label) == ("X", "Y")
    assert [(each.label, each.group, each.value) for each in chart.elements] == [("a", "g", 1), ("b", "g", 2.5)]
    chart, _ = draw("plt.barh(['a', 'b'], [1, 2]); plt.xlabel('X'); plt.ylabel('Y')")
    assert (chart.x_label, chart.y_label) == ("Y", "X")
    assert [(each.label, each.value) for each in chart.elements] == [("a", 1), ("b", 2)]


def test_pie():
    """pie"""
    chart, _ = draw("plt.pie([1, 1, 2], labels=['a', 'b', 'c'])")
    assert isinstance(chart, charts.PieChart)
    assert [(each.label, round(each.angle, 3), each.radius) for each in chart.elements] == [("a", 90, 1), ("b", 90, 1), ("c", 180, 1)]


def test_box():
    """box and whisker"""
    chart, truth = draw("data = [[1, 2, 3, 4, 5, 6, 20], [2, 4, 4, 6, 8]]; plt.boxplot(data, labels=['x', 'y'], patch_artist=True)\n"
                        "keys = ('whislo', 'q1', 'med', 'q3', 'whishi')\n"
                        "print(json.dumps([[float(each[key]) for key in keys] for each in cbook.boxplot_stats(data)]))")
    assert isinstance(chart, charts.BoxAndWhiskerChart)
    for each, want in zip(chart.elements, truth):
        close([each.min, each.first_quartile, each.median, each.third_quartile, each.max], want)
    assert [each.outliers for each in chart.elements] == [[20], []]


def test_superchart():
    """superchart"""
    chart, _ = draw("fig, (a, b) = plt.subplots(1, 2); a.plot([1, 2]); b.scatter([1], [2]); fig.suptitle('Both')")
    assert isinstance(chart, charts.SuperChart) and chart.title == "Both"
    assert [type(each) for each in chart.elements] == [charts.LineChart, charts.ScatterChart]


def test_scales():
    """every scale"""
    for name, call in (("log", "'log'"), ("symlog", "'symlog'"), ("logit", "'logit'"), ("asinh", "'asinh'"),
                       ("function", "'function', functions=(lambda v: v ** 2, np.sqrt)"),
                       ("functionlog", "'functionlog', functions=(lambda v: v ** 2, np.sqrt)")):
        chart, _ = draw(f"plt.plot([0.1, 0.5, 0.9], [0.2, 0.5, 0.8]); plt.xscale({call})")
        assert (chart.x_scale, chart.y_scale) == (charts.ScaleType(name), charts.ScaleType.LINEAR)
    chart, _ = draw("plt.plot([datetime.date(2024, 1, n) for n in (1, 2, 3)], [1, 2, 3])")
    assert chart.x_scale == charts.ScaleType.DATETIME and chart.elements[0].points[0][0].startswith("2024-01-01")
    chart, _ = draw("plt.plot(['low', 'high'], [1, 2])")
    assert chart.x_scale == charts.ScaleType.CATEGORICAL and chart.x_tick_labels == ["low", "high"]


def test_unknown():
    """another kind, and an empty figure"""
    chart, _ = draw("plt.imshow(np.zeros((2, 2))); plt.title('Pixels')")
    assert (chart.type, chart.title) == (charts.ChartType.UNKNOWN, "Pixels")
    for each in run(f"{SETUP}plt.figure(); plt.show()").results:
        assert getattr(each, "chart", None) is None

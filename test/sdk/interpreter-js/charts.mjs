// SPDX-License-Identifier: Apache-2.0
//
// The data of charts, held against the figure: the cell that draws it also prints what matplotlib itself says
// of it, and both must agree.
import assert from 'node:assert/strict';
import { test } from '../js/harness.mjs';
import { run, stdout } from './kit.mjs';

const SETUP = `
import datetime, json
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook
`;

// Draws it. Returns the chart, and what the cell printed, as JSON.
async function draw(code) {
  const execution = await run(`${SETUP}${code}\nplt.show()`);
  const shown = execution.results.filter(({ png }) => png);
  assert.equal(shown.length, 1, 'one figure');
  assert.deepEqual(shown[0].extra, {});
  const printed = stdout(execution).trim();
  return { chart: shown[0].chart, truth: printed && JSON.parse(printed) };
}

// The scales, ticks and tick labels as matplotlib has them after drawing.
const TICKS = `
ax = plt.gca(); ax.figure.canvas.draw()
print(json.dumps({"x_ticks": np.asarray(ax.get_xticks()).tolist(), "y_ticks": np.asarray(ax.get_yticks()).tolist(),
  "x_tick_labels": [each.get_text() for each in ax.get_xticklabels()],
  "y_tick_labels": [each.get_text() for each in ax.get_yticklabels()],
  "lines": [line.get_xydata().tolist() for line in ax.lines],
  "dots": [each.get_offsets().tolist() for each in ax.collections]}))
`;

function sameNumbers(got, want, what) {
  assert.equal(got.length, want.length, what);
  got.forEach((each, i) => assert.ok(Math.abs(each - want[i]) <= 1e-9 * Math.max(1, Math.abs(want[i])), `${what}: ${each} and ${want[i]}`));
}

function sameAxes(chart, truth) {
  sameNumbers(chart.x_ticks, truth.x_ticks, 'x ticks');
  sameNumbers(chart.y_ticks, truth.y_ticks, 'y ticks');
  assert.deepEqual(chart.x_tick_labels, truth.x_tick_labels);
  assert.deepEqual(chart.y_tick_labels, truth.y_tick_labels);
}

test('line: labels, units, points, ticks', async () => {
  const { chart, truth } = await draw(`x = np.linspace(0, 10, 100)
plt.plot(x, np.sin(x), label="sin(x)"); plt.plot(x, np.cos(x), label="cos(x)")
plt.xlabel("Time (s)"); plt.ylabel("Amplitude [Hz]"); plt.title("Waves"); plt.grid(True); plt.legend()${TICKS}`);
  assert.deepEqual([chart.type, chart.title], ['line', 'Waves']);
  assert.deepEqual([chart.x_label, chart.x_unit, chart.y_label, chart.y_unit], ['Time (s)', 's', 'Amplitude [Hz]', 'Hz']);
  assert.deepEqual([chart.x_scale, chart.y_scale], ['linear', 'linear']);
  sameAxes(chart, truth);
  assert.deepEqual(chart.elements.map(({ label }) => label), ['sin(x)', 'cos(x)']);
  chart.elements.forEach(({ points }, i) => sameNumbers(points.flat(), truth.lines[i].flat(), `line ${i}`));
});

test('line: no labels, no title, lines across left out', async () => {
  const { chart } = await draw('plt.plot([1, 2], [3, 5]); plt.plot([1, 2], [4, 7]); plt.axhline(3); plt.axvline(1.5)');
  assert.equal(chart.type, 'line');
  assert.deepEqual([chart.title, chart.x_label, chart.y_label, chart.x_unit, chart.y_unit], [null, null, null, null, null]);
  assert.deepEqual(chart.elements.map(({ label, points }) => [label, points]),
    [['Line 0', [[1, 3], [2, 5]]], ['Line 1', [[1, 4], [2, 7]]]]);
});

test('scatter: several groups', async () => {
  const { chart, truth } = await draw(`rng = np.random.default_rng(1)
plt.scatter(rng.random(40), rng.random(40), label="one"); plt.scatter([1, 2, 3], [4, 5, 6], label="two")
plt.xlabel("A"); plt.ylabel("B"); plt.title("Dots")${TICKS}`);
  assert.deepEqual([chart.type, chart.title, chart.x_label, chart.y_label], ['scatter', 'Dots', 'A', 'B']);
  sameAxes(chart, truth);
  assert.deepEqual(chart.elements.map(({ label }) => label), ['one', 'two']);
  chart.elements.forEach(({ points }, i) => sameNumbers(points.flat(), truth.dots[i].flat(), `group ${i}`));
});

test('bar: vertical', async () => {
  const { chart } = await draw(`plt.bar(["Ann", "Bob", "Cid"], [100, 250, 175.5], label="Books")
plt.xlabel("Author"); plt.ylabel("Sold (thousands)"); plt.title("Sales")`);
  assert.deepEqual([chart.type, chart.title], ['bar', 'Sales']);
  assert.deepEqual([chart.x_label, chart.y_label, chart.x_unit, chart.y_unit], ['Author', 'Sold (thousands)', null, 'thousands']);
  assert.deepEqual(chart.elements, [{ label: 'Ann', group: 'Books', value: 100 }, { label: 'Bob', group: 'Books', value: 250 },
    { label: 'Cid', group: 'Books', value: 175.5 }]);
});

test('bar: horizontal, the labels of the axes swapped', async () => {
  const { chart } = await draw(`plt.barh(["Ann", "Bob", "Cid"], [100, 250, 175])
plt.xlabel("Sold [n]"); plt.ylabel("Author")`);
  assert.equal(chart.type, 'bar');
  assert.deepEqual([chart.x_label, chart.y_label, chart.x_unit, chart.y_unit], ['Author', 'Sold [n]', null, 'n']);
  assert.deepEqual(chart.elements.map(({ label, value }) => [label, value]), [['Ann', 100], ['Bob', 250], ['Cid', 175]]);
  assert.ok(chart.elements.every(({ group }) => /^Group \d+$/.test(group)));
});

test('bar: groups beside each other and on top of each other', async () => {
  const { chart } = await draw(`names = ["a", "b"]; at = np.arange(2)
plt.bar(at - 0.2, [1, 2], 0.4, label="first"); plt.bar(at + 0.2, [3, 4], 0.4, label="second"); plt.xticks(at, names)`);
  assert.deepEqual(chart.elements.map(({ label, group, value }) => [label, group, value]),
    [['a', 'first', 1], ['b', 'first', 2], ['a', 'second', 3], ['b', 'second', 4]]);
  const stacked = (await draw('plt.bar(["a", "b"], [1, 2], label="low"); plt.bar(["a", "b"], [3, 5], bottom=[1, 2], label="high")')).chart;
  assert.deepEqual(stacked.elements.map(({ group, value }) => [group, value]), [['low', 1], ['low', 2], ['high', 3], ['high', 5]]);
});

test('pie: angles and labels', async () => {
  const { chart, truth } = await draw(`wedges, *_ = plt.pie([1450, 575, 300, 120], labels=["Rent", "Food", "Bus", "Fun"], radius=1.2)
plt.title("Money"); print(json.dumps([wedge.theta2 - wedge.theta1 for wedge in wedges]))`);
  assert.deepEqual([chart.type, chart.title], ['pie', 'Money']);
  assert.deepEqual(chart.elements.map(({ label, radius }) => [label, radius]), [['Rent', 1.2], ['Food', 1.2], ['Bus', 1.2], ['Fun', 1.2]]);
  chart.elements.forEach(({ angle }, i) => assert.ok(Math.abs(angle - truth[i]) < 1e-3, `${angle} and ${truth[i]}`));
  assert.ok(Math.abs(chart.elements.reduce((sum, { angle }) => sum + angle, 0) - 360) < 0.01);
});

for (const boxes of ['patch_artist=True', 'patch_artist=False', 'patch_artist=True, vert=False']) {
  test(`box and whisker: ${boxes}`, async () => {
    const { chart, truth } = await draw(`data = [[1, 2, 3, 4, 5, 6, 20], [2, 4, 4, 6, 8], [-9, 1, 2, 3, 3, 5, 7]]
plt.boxplot(data, labels=["x", "y", "z"], ${boxes}); plt.title("Boxes"); plt.ylabel("Value (cm)")
keys = ("whislo", "q1", "med", "q3", "whishi", "fliers")
print(json.dumps([{key: np.asarray(each[key]).tolist() for key in keys} for each in cbook.boxplot_stats(data)]))`);
    assert.deepEqual([chart.type, chart.title], ['box_and_whisker', 'Boxes']);
    assert.deepEqual(chart.elements.map(({ label }) => label), ['x', 'y', 'z']);
    chart.elements.forEach((each, i) => {
      const { whislo, q1, med, q3, whishi, fliers } = truth[i];
      sameNumbers([each.min, each.first_quartile, each.median, each.third_quartile, each.max], [whislo, q1, med, q3, whishi], each.label);
      sameNumbers(each.outliers, fliers, 'outliers');
    });
    const [across, along] = boxes.includes('vert=False') ? ['Value (cm)', null] : [null, 'Value (cm)'];
    assert.deepEqual([chart.x_label, chart.y_label], [across, along]);
  });
}

test('superchart: every axes of the figure', async () => {
  const { chart } = await draw(`fig, (left, right) = plt.subplots(1, 2)
left.plot([1, 2], [3, 5], label="up"); left.set_title("Left"); right.bar(["a"], [7], label="only"); right.set_title("Right")
fig.suptitle("Both")`);
  assert.deepEqual([chart.type, chart.title], ['superchart', 'Both']);
  assert.deepEqual(chart.elements.map(({ type, title }) => [type, title]), [['line', 'Left'], ['bar', 'Right']]);
  assert.deepEqual(chart.elements[0].elements[0].points, [[1, 3], [2, 5]]);
  assert.equal(chart.elements[1].elements[0].value, 7);
});

test('scale: dates', async () => {
  const { chart } = await draw(`days = [datetime.date(2023, 9, 1) + datetime.timedelta(days=n) for n in range(10)]
plt.plot(days, range(10), label="days")`);
  assert.deepEqual([chart.type, chart.x_scale, chart.y_scale], ['line', 'datetime', 'linear']);
  assert.deepEqual(chart.elements[0].points.map(([x]) => x.slice(0, 10)),
    Array.from({ length: 10 }, (_, i) => `2023-09-${String(i + 1).padStart(2, '0')}`));
  assert.ok(chart.x_ticks.every((tick) => !Number.isNaN(Date.parse(tick))), JSON.stringify(chart.x_ticks));
});

test('scale: moments of numpy and pandas', async () => {
  const { chart } = await draw(`plt.plot(np.array(["2024-01-01T00:00:00", "2024-01-01T12:30:00"], dtype="datetime64[s]"), [1, 2])`);
  assert.equal(chart.x_scale, 'datetime');
  assert.deepEqual(chart.elements[0].points, [['2024-01-01T00:00:00', 1], ['2024-01-01T12:30:00', 2]]);
});

test('scale: categories', async () => {
  const { chart } = await draw('plt.scatter(["low", "mid", "high"], [1, 2, 3])');
  assert.deepEqual([chart.type, chart.x_scale, chart.y_scale], ['scatter', 'categorical', 'linear']);
  assert.deepEqual(chart.x_tick_labels, ['low', 'mid', 'high']);
});

const SCALES = [['log', '"log"'], ['symlog', '"symlog"'], ['logit', '"logit"'], ['asinh', '"asinh"'],
  ['function', '"function", functions=(lambda v: v ** 2, np.sqrt)'],
  ['functionlog', '"functionlog", functions=(lambda v: v ** 2, np.sqrt)']];
for (const [scale, call] of SCALES) {
  test(`scale: ${scale}`, async () => {
    const { chart, truth } = await draw(`plt.plot([0.1, 0.3, 0.5, 0.9], [0.2, 0.4, 0.6, 0.8])
plt.xscale(${call}); plt.yscale(${call})${TICKS}`);
    assert.deepEqual([chart.type, chart.x_scale, chart.y_scale], ['line', scale, scale]);
    sameAxes(chart, truth);
  });
}

test('a figure of another kind is unknown, and still a picture', async () => {
  const { chart } = await draw('plt.imshow(np.zeros((3, 3))); plt.title("Pixels")');
  assert.deepEqual([chart.type, chart.title], ['unknown', 'Pixels']);
});

test('a figure without anything on it', async () => {
  const execution = await run(`${SETUP}plt.figure(); plt.show()`);
  for (const { chart } of execution.results) assert.deepEqual(chart ?? {}, {});
});

test('numbers that are none do not cost the chart', async () => {
  const { chart } = await draw('plt.plot([1, 2, 3], [1, np.nan, 3], label="gap")');
  assert.equal(chart.type, 'line');
  assert.deepEqual(chart.elements[0].points.map(([x]) => x), [1, 2, 3]);
});

test('charts by pandas and with objects of their own', async () => {
  const bars = (await draw('import pandas as pd\npd.DataFrame({"n": [1, 2]}, index=["a", "b"]).plot.bar()')).chart;
  assert.deepEqual(bars.elements, [{ label: 'a', group: 'n', value: 1 }, { label: 'b', group: 'n', value: 2 }]);
  const lines = (await draw('pd.DataFrame({"u": [1, 2, 3], "v": [3, 2, 1]}).plot()')).chart;
  assert.deepEqual(lines.elements.map(({ label }) => label), ['u', 'v']);
});

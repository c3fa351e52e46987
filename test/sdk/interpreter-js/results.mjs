// SPDX-License-Identifier: Apache-2.0
//
// Results in every form: of IPython's display objects, pandas, Pillow, matplotlib and of one's own classes.
import assert from 'node:assert/strict';
import { common, test } from '../js/harness.mjs';
import { result, run } from './kit.mjs';

const PNG = '89504e470d0a1a0a';
const start = (base64, bytes = 8) => Buffer.from(base64, 'base64').subarray(0, bytes).toString('hex');
const width = (base64) => Buffer.from(base64, 'base64').readUInt32BE(16); // of a PNG

// An object of IPython.display, and what it must give: the form and its content.
const DISPLAYED = [
  ['HTML("<b>bold</b>")', 'html', '<b>bold</b>'],
  ['Markdown("# Title")', 'markdown', '# Title'],
  ['Latex("$x^2$")', 'latex', '$x^2$'],
  ['Math("x^2")', 'latex', '$\\displaystyle x^2$'],
  ['JSON({"a": [1, None, "b"]})', 'json', { a: [1, null, 'b'] }],
  ['Javascript("alert(1)")', 'javascript', 'alert(1)'],
];
for (const [expression, form, content] of DISPLAYED) {
  test(`${form}: ${expression}`, async () => {
    const main = await result(`from IPython.display import *\n${expression}`);
    assert.deepEqual(main[form], content);
    assert.equal(main.isMainResult, true);
    assert.ok(main.formats().includes(form));
    const shown = await result(`display(${expression})`);
    assert.deepEqual(shown[form], content);
    assert.equal(shown.isMainResult, false);
  });
}

test('svg: SVG(…)', async () => {
  const svg = '<svg xmlns="http://www.w3.org/2000/svg"><circle r="5"/></svg>';
  const main = await result(`from IPython.display import SVG\nSVG('${svg}')`);
  assert.match(main.svg, /<svg[^]*<circle r="5"\/>/);
});

test('png, jpeg and pdf as bytes', async () => {
  const shown = await result('import base64\nfrom IPython.display import display\n' +
    'parts = {"image/png": b"\\x89PNG\\r\\n\\x1a\\n", "image/jpeg": b"\\xff\\xd8\\xff", "application/pdf": b"%PDF-1.4"}\n' +
    'display({kind: base64.b64encode(data).decode() for kind, data in parts.items()}, raw=True)');
  assert.equal(start(shown.png), PNG);
  assert.equal(start(shown.jpeg), 'ffd8ff');
  assert.equal(Buffer.from(shown.pdf, 'base64').toString(), '%PDF-1.4');
});

test('png: Image(data=…)', async () => {
  const main = await result('import io\nfrom PIL import Image as Picture\nfrom IPython.display import Image\n' +
    'stream = io.BytesIO(); Picture.new("RGB", (7, 3)).save(stream, "PNG")\nImage(data=stream.getvalue())');
  assert.equal(start(main.png), PNG);
  assert.equal(width(main.png), 7);
});

test('Pillow: an image is its PNG', async () => {
  const main = await result('from PIL import Image\nImage.new("RGB", (60, 30), color="red")');
  assert.equal(start(main.png), PNG);
  assert.equal(width(main.png), 60);
  assert.match(main.text, /PIL\.Image\.Image/);
});

test('Pillow: save() shows the image too', async () => {
  const sandbox = await common();
  const { results } = await run('from PIL import Image\nImage.new("RGB", (61, 30), color="red").save("test.png", "PNG")');
  assert.equal(results.length, 1);
  assert.equal(width(results[0].png), 61);
  assert.equal((await sandbox.commands.run('head -c 4 test.png | tail -c 3')).stdout, 'PNG');
});

test('matplotlib: show() and the end of the cell', async () => {
  const { results } = await run('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.show()\nprint("between")\nplt.plot([3, 2, 1]);');
  assert.equal(results.length, 2);
  for (const each of results) {
    assert.equal(start(each.png), PNG);
    assert.match(each.text, /Figure/);
    assert.equal(each.isMainResult, false);
    assert.deepEqual(each.extra, {});
  }
});

test('matplotlib: two figures in one cell, and none is left for the next', async () => {
  const { results } = await run('plt.figure(); plt.plot([1])\nplt.figure(); plt.plot([2]);');
  assert.equal(results.filter(({ png }) => png).length, 2);
  assert.deepEqual((await run('1;')).results, []);
});

test('matplotlib: a picture of the asked size, and one saved to a file', async () => {
  const sandbox = await common();
  const { results } = await run('fig = plt.figure(figsize=(2, 1), dpi=100); plt.plot([1, 2]); fig.savefig("figure.pdf"); plt.show()');
  assert.ok(width(results[0].png) > 100 && width(results[0].png) < 300);
  assert.equal((await sandbox.commands.run('head -c 5 figure.pdf')).stdout, '%PDF-');
});

test('pandas: a frame as text, HTML and columns', async () => {
  const main = await result('import pandas as pd\npd.DataFrame({"a": [1, 2, 3], "b": [1.5, None, 3.0], "c": ["x", "y", "žluť 🚀"]})');
  assert.match(main.text, /a\s+b\s+c/);
  assert.match(main.html, /<table[^]*<th>a<\/th>/);
  assert.deepEqual(main.data, { a: [1, 2, 3], b: [1.5, null, 3], c: ['x', 'y', 'žluť 🚀'] });
  assert.ok(main.formats().includes('data'));
});

test('pandas: dates, numbers that are none, other kinds of column', async () => {
  const main = await result('import numpy as np\npd.DataFrame({"when": pd.to_datetime(["2024-01-02 03:04:05", "2024-12-31"]), ' +
    '"far": [np.inf, -1.0], "yes": [True, False], "kind": pd.Categorical(["x", "y"]), "many": [[1, 2], None]})');
  assert.deepEqual(main.data.when.map((each) => each.slice(0, 19)), ['2024-01-02T03:04:05', '2024-12-31T00:00:00']);
  assert.deepEqual([main.data.yes, main.data.kind], [[true, false], ['x', 'y']]);
  assert.deepEqual(Object.keys(main.data), ['when', 'far', 'yes', 'kind', 'many']);
});

test('pandas: display() in the middle, and several', async () => {
  const { results } = await run('frame = pd.DataFrame({"n": [1]})\ndisplay(frame, frame * 2)\nframe * 3');
  assert.deepEqual(results.map(({ data, isMainResult }) => [data.n, isMainResult]), [[[1], false], [[2], false], [[3], true]]);
});

test('pandas: a large frame does not come whole, but comes', async () => {
  const main = await result('pd.DataFrame(np.zeros((100_000, 5)))');
  assert.match(main.text, /100000 rows x 5 columns|\[100000 rows/);
});

test('numpy: an array', async () => {
  assert.equal((await result('np.arange(4).reshape(2, 2)')).text, 'array([[0, 1],\n       [2, 3]])');
});

test('lists and dictionaries are JSON too', async () => {
  assert.deepEqual((await result('[1, "two", None, {"three": 3.5}]')).json, [1, 'two', null, { three: 3.5 }]);
  const main = await result('{"a": {"b": [True]}}');
  assert.deepEqual(main.json, { a: { b: [true] } });
  assert.equal(main.text, '{\'a\': {\'b\': [True]}}');
});

test('what cannot be JSON is at least text', async () => {
  assert.equal((await result('{"a": {1, 2}}')).text, '{\'a\': {1, 2}}');
  assert.match((await result('circle = []; circle.append(circle); circle')).text, /\[\[\.\.\.\]\]/);
});

test('an object with forms of its own', async () => {
  const main = await result('class Mine:\n    def _repr_html_(self): return "<i>mine</i>"\n' +
    '    def _repr_markdown_(self): return "*mine*"\n    def __repr__(self): return "mine"\nMine()');
  assert.deepEqual([main.html, main.markdown, main.text], ['<i>mine</i>', '*mine*', 'mine']);
});

test('an unknown kind is kept by its name', async () => {
  const shown = await result('display({"application/x-mine": "content", "text/plain": "plain"}, raw=True)');
  assert.equal(shown.text, 'plain');
  assert.equal(shown.raw.extra['application/x-mine'], 'content');
});

test('a form that fails does not cost the others', async () => {
  const execution = await run('class Broken:\n    def _repr_html_(self): raise RuntimeError("broken form")\n' +
    '    def __repr__(self): return "still here"\nBroken()');
  assert.equal(execution.text, 'still here');
});

test('an object whose repr fails ends the cell with an error', async () => {
  const sandbox = await common();
  const { error } = await sandbox.runCode('class Bad:\n    def __repr__(self): raise RuntimeError("no repr")\nBad()');
  assert.equal(error?.name, 'RuntimeError');
});

test('display() comes in order with what is printed', async () => {
  const seen = [];
  const callbacks = { onStdout: ({ line }) => { seen.push(line.trim()); }, onResult: ({ text }) => { seen.push(text); } };
  await run('print("one")\ndisplay("two")\nprint("three")\n!echo four\ndisplay("five")\n!echo six\n"seven"', callbacks);
  assert.equal(seen.join(' ').replaceAll('\n', ' '), 'one two three four five six seven');
  seen.length = 0;
  await run('for i in range(100):\n    print(f"p{i}")\n    display(i)', callbacks);
  assert.equal(seen.join(' '), Array.from({ length: 100 }, (_, i) => `p${i} ${i}`).join(' '));
});

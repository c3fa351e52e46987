# SPDX-License-Identifier: Apache-2.0
"""What cells of the Python kernel show: every kind of result, data frames, pictures and figures."""
import base64
import os
import tempfile

from cases_python import check, command, need  # noqa: F401  pylint: disable=unused-import

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n")[:10].decode()
SHOW = "from IPython.display import *\n"


def only(answer):
    assert answer.error is None and len(answer.results) == 1, answer
    return answer.results[0]


def test_text(world):
    """strings lose their quotes, nothing else does"""
    for code, text in (("'abc'", "abc"), ('"it\'s"', "it's"), ("''", ""), ("'a\"b\\'c'", "a\"b\\'c"), ("b'x'", "b'x'"), ("None", None),
                       ("class Odd:\n    def __repr__(self):\n        return \"'a' or 'b'\"\nOdd()", "'a' or 'b'")):
        check((code, world.kernel.cell(code).text), (code, text))


def test_json(world):
    """lists and dicts are JSON too, if JSON can say them"""
    kernel = world.kernel
    check(only(kernel.cell("{'a': [1, None, {'b': 2.5}]}")),
          {"text": "{'a': [1, None, {'b': 2.5}]}", "json": {"a": [1, None, {"b": 2.5}]}, "is_main_result": True})
    check(only(kernel.cell("[1, float('nan')]"))["json"], [1, None])
    for code in ("[object]", "a = []; a.append(a); a", "{(1, 2): 3}", "[{1}]", "list(range(200_000))", "(1, 2)"):
        assert "json" not in only(kernel.cell(code)), code


def test_displays(world):
    """every kind of display has its field; other MIME types are extra"""
    code = SHOW + ("display(HTML('<b>'), Markdown('*m*'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'), Latex('$x$'), "
                   "JSON({'a': 1}), Javascript('f()'), Image(b'\\x89PNG\\r\\n\\x1a\\n', format='png'), Image(b'\\xff\\xd8\\xff', format='jpeg'))\n"
                   "display({'application/pdf': b'%PDF', 'application/vnd.x+json': {'y': 1}, 'text/x-odd': 'z'}, raw=True)")
    results = world.kernel.cell(code).results
    names = [sorted(set(result) - {"text", "is_main_result"}) for result in results]
    check(names, [["html"], ["markdown"], ["svg"], ["latex"], ["json"], ["javascript"], ["png"], ["jpeg"], ["extra", "pdf"]])
    check([result["is_main_result"] for result in results], [False] * 9)
    check((results[0]["html"], results[3]["latex"], results[4]["json"]), ("<b>", "$x$", {"a": 1}))
    check((results[6]["png"][:10], base64.b64decode(results[7]["jpeg"])), (PNG, b"\xff\xd8\xff"))
    check((base64.b64decode(results[8]["pdf"]), results[8]["extra"]), (b"%PDF", {"application/vnd.x+json": {"y": 1}, "text/x-odd": "z"}))


def test_raw_alone(world):
    """a display of LaTeX alone has nothing but LaTeX"""
    check(only(world.kernel.cell(SHOW + "display({'text/latex': r'\\text{C}'}, raw=True)")), {"latex": "\\text{C}", "is_main_result": False})


def test_updates(world):
    """updates of a display are borne"""
    code = SHOW + "handle = display('a', display_id=True)\nhandle.update('b')\nupdate_display('c', display_id=handle.display_id)\nclear_output()"
    answer = world.kernel.cell(code)
    check(([result["text"] for result in answer.results], answer.stdout), (["a"], ""))


def test_own_representations(world):
    """objects that say themselves how they look"""
    check(only(world.kernel.cell("class A:\n    def _repr_html_(self): return '<i>'\n    def __repr__(self): return 'A!'\nA()")),
          {"text": "A!", "html": "<i>", "is_main_result": True})
    code = "class B:\n    def _repr_mimebundle_(self, include=None, exclude=None): return {'application/vnd.plotly.v1+json': {'data': []}, 'text/html': 'p'}\nB()"
    result = only(world.kernel.cell(code))
    check((result["extra"], result["html"]), ({"application/vnd.plotly.v1+json": {"data": []}}, "p"))


def test_broken_representations(world):
    """a broken _repr_html_ is a remark, a broken repr is an error, and neither ends the context"""
    answer = world.kernel.cell("class A:\n    def _repr_html_(self): 1 / 0\n    def __repr__(self): return 'A!'\nA()")
    check((answer.error, answer.text), (None, "A!"))
    assert "ZeroDivisionError" in answer.stderr
    answer = world.kernel.cell("class B:\n    def __repr__(self): 1 / 0\nB()")
    check((answer.error["name"], answer.results), ("ZeroDivisionError", []))
    check(world.kernel.cell("1").text, "1")


def test_too_large(world):
    """a result of more than 24 MiB is a remark"""
    result = only(world.kernel.cell(SHOW + "display({'text/html': 'x' * (25 << 20)}, raw=True)"))
    assert "html" not in result and "not shown" in result["text"], str(result)[:200]


def test_help(world):
    """object? is a result and no pager"""
    answer = world.kernel.cell("len?")
    assert "number of items" in answer.stdout + str(answer.results), answer


def test_magics(world):
    """magics: %%bash, %%capture, %time, %pip's way, and one that is not there"""
    kernel = world.kernel
    answer = kernel.cell("%%bash\necho out; echo err >&2; exit 3")
    check((answer.stdout, answer.stderr, answer.error["name"]), ("out\n", "err\n", "CalledProcessError"))
    check(kernel.cell("%%capture kept\nprint('inside'); display('shown')").results, [])
    check(kernel.cell("kept.stdout").text, "inside\\n")
    check(kernel.cell("lines = !printf 'a\\nb'\nlines").main["json"], ["a", "b"])
    check(kernel.cell("!exit 4\n_exit_code").text, "4")
    check(kernel.cell("%nonsense").error["name"], "UsageError")
    assert "Wall time" in kernel.cell("%time 1").stdout
    check(kernel.cell("x = 'here'\n!echo {x} $x").stdout, "here here\n")


def test_program_output(world):
    """what a program of !cmd says comes at once"""
    kernel = world.kernel
    kernel.begin("!echo one; sleep 30")
    kernel.wait_output("one", 20)
    kernel.interrupt()
    check(kernel.end().error["name"], "KeyboardInterrupt")


# --- pandas ---------------------------------------------------------------------------------------------


def test_frames(world):
    """data frames: text, HTML and values"""
    kernel = world.kernel
    need(kernel, "pandas")
    code = ("import pandas as pd, numpy as np\nf = pd.DataFrame({'a': [1, 2], 'b': [0.5, np.nan], 'c': ['x', None], "
            "'d': pd.to_datetime(['2024-01-02', None]), 'e': pd.Categorical(['u', 'v']), 7: [True, False]})\nf")
    result = only(kernel.cell(code))
    check(sorted(result), ["data", "html", "is_main_result", "text"])
    check(result["data"], {"a": [1, 2], "b": [0.5, None], "c": ["x", None], "d": ["2024-01-02T00:00:00", None], "e": ["u", "v"], "7": [True, False]})
    assert "<table" in result["html"]


def test_series(world):
    """a series is a frame with one column"""
    need(world.kernel, "pandas")
    result = only(world.kernel.cell("import pandas as pd\npd.Series([1, 2], name='s')"))
    check((result["data"], "<table" in result["html"], "Name: s" in result["text"]), ({"s": [1, 2]}, True, True))


def test_large_frames(world):
    """a large frame has no values, rather than some of them"""
    need(world.kernel, "pandas")
    result = only(world.kernel.cell("import pandas as pd\npd.DataFrame({'a': range(100_001)})"))
    check(("data" in result, "html" in result), (False, True))


# --- pictures -------------------------------------------------------------------------------------------


def test_images(world):
    """Pillow's images: PNG, JPEG, and colours that PNG has not"""
    kernel = world.kernel
    need(kernel, "PIL")
    kernel.cell("from PIL import Image\nimport io")
    result = only(kernel.cell("Image.new('RGB', (4, 4), 'red')"))
    check((result["png"][:10], "<PIL.Image.Image" in result["text"]), (PNG, True))
    assert "png" in only(kernel.cell("Image.new('CMYK', (4, 4))"))
    code = "out = io.BytesIO()\nImage.new('RGB', (4, 4)).save(out, 'JPEG')\nImage.open(out)"
    check(base64.b64decode(only(kernel.cell(code))["jpeg"])[:3], b"\xff\xd8\xff")


def test_saved_images(world):
    """an image that is saved or shown is displayed; one that is written into memory is not"""
    kernel = world.kernel
    need(kernel, "PIL")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a.png")
        result = only(kernel.cell(f"from PIL import Image\nImage.new('RGB', (4, 4)).save({path!r})"))
        check((result["png"][:10], result["is_main_result"], os.path.exists(path)), (PNG, False, True))
    check(len(kernel.cell("Image.new('RGB', (4, 4)).show()").results), 1)
    check(kernel.cell("import io; Image.new('RGB', (4, 4)).save(io.BytesIO(), 'PNG')").results, [])


# --- figures --------------------------------------------------------------------------------------------


def test_figure(world):
    """a figure is shown by show(), once, with picture, text and chart"""
    kernel = world.kernel
    need(kernel, "matplotlib")
    answer = kernel.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    result = only(answer)
    check(sorted(result), ["chart", "is_main_result", "png", "text"])
    check((result["png"][:10], result["text"], result["is_main_result"]), (PNG, "<Figure size 640x480 with 1 Axes>", False))
    check(answer.stderr, "")


def test_figures_at_the_end(world):
    """figures that are open at the end of a cell are shown, also when it fails"""
    kernel = world.kernel
    need(kernel, "matplotlib")
    answer = kernel.cell("import matplotlib.pyplot as plt\nfor _ in range(2):\n    plt.figure()\n    plt.plot([1])\n1/0")
    check(answer.kinds, ["count", "result", "result", "error"])
    check(kernel.cell("1").results, [{"text": "1", "is_main_result": True}])


def test_figure_value(world):
    """a figure as the value of a cell is its main result"""
    kernel = world.kernel
    need(kernel, "matplotlib")
    main = kernel.cell("from matplotlib.figure import Figure\nf = Figure()\nf.subplots().plot([1, 2])\nf").main
    check((main["png"][:10], main["chart"]["type"]), (PNG, "line"))


def test_captured_figure(world):
    """%%capture has figures too"""
    kernel = world.kernel
    need(kernel, "matplotlib")
    check(kernel.cell("%%capture kept\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()").results, [])
    check(kernel.cell("[sorted(one.data) for one in kept.outputs]").main["json"], [["e2b/chart", "image/png", "text/plain"]])


def test_other_backend(world):
    """who chooses Agg shows nothing and keeps figures"""
    need(world.kernel, "matplotlib")
    with world.new() as kernel:
        check(kernel.cell("import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\n_ = plt.plot([1])").results, [])
        check(kernel.cell("plt.get_fignums()").main["json"], [1])
        check(len(kernel.cell("%matplotlib inline\n_ = plt.plot([1])\nplt.show()").results), 1)


def test_saved_figure(world):
    """a figure that is saved is not shown a second time"""
    kernel = world.kernel
    need(kernel, "matplotlib")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a.png")
        check("chart" in only(kernel.cell(f"import matplotlib.pyplot as plt\n_ = plt.plot([1])\nplt.savefig({path!r})")), True)
        assert os.path.getsize(path) > 100


def test_figure_formats(world):
    """%config InlineBackend.figure_format"""
    need(world.kernel, "matplotlib")
    with world.new() as kernel:
        kernel.cell("import matplotlib.pyplot as plt\n%config InlineBackend.figure_format = 'svg'")
        result = only(kernel.cell("plt.plot([1])\nplt.show()"))
        check(("<svg" in result["svg"], "png" in result), (True, False))


def test_broken_figure(world):
    """a figure that cannot be drawn is an error of its cell and gone afterwards"""
    kernel = world.kernel
    need(kernel, "matplotlib")
    answer = kernel.cell("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.title('$\\\\nonsense{$');")
    check(answer.error["name"], "ValueError")
    check(kernel.cell("1").error, None)


def test_child_program(world):
    """a Python that a cell starts has matplotlib as it is"""
    need(world.kernel, "matplotlib")
    answer = world.kernel.cell("import sys\n!{sys.executable} -c 'import matplotlib.pyplot as p; p.plot([1]); print(p.get_backend())'")
    check(answer.stdout.lower(), "agg\n")

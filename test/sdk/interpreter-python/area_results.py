# SPDX-License-Identifier: Apache-2.0
"""Results in every form."""
import base64

from kit import result, run


def begins(text, want):
    return base64.b64decode(text).startswith(want)


def test_display():
    """html, markdown, latex, json, javascript, svg"""
    for expression, form, want in (
            ("HTML('<b>x</b>')", "html", "<b>x</b>"), ("Markdown('# T')", "markdown", "# T"), ("Latex('$x$')", "latex", "$x$"),
            ("JSON({'a': [1]})", "json", {"a": [1]}), ("Javascript('alert(1)')", "javascript", "alert(1)")):
        shown = result(f"from IPython.display import *\n{expression}")
        assert shown[form] == want, (form, shown[form])
        assert shown.is_main_result and form in shown.formats()
    assert "<circle" in result("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"><circle r=\"5\"/></svg>')").svg


def test_bytes():
    """png, jpeg and pdf"""
    shown = result("import base64\ndisplay({kind: base64.b64encode(data).decode() for kind, data in {'image/png': b'\\x89PNG', "
                   "'image/jpeg': b'\\xff\\xd8', 'application/pdf': b'%PDF-'}.items()}, raw=True)")
    assert begins(shown.png, b"\x89PNG") and begins(shown.jpeg, b"\xff\xd8") and begins(shown.pdf, b"%PDF-")
    assert not shown.is_main_result


def test_pillow():
    """Pillow: an image, and one that is saved"""
    assert begins(result("from PIL import Image\nImage.new('RGB', (60, 30))").png, b"\x89PNG")
    assert begins(result("Image.new('RGB', (60, 30)).save('saved.png')").png, b"\x89PNG")


def test_plot():
    """matplotlib: a picture, a text, a chart, nothing else"""
    shown = result("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.show()")
    assert begins(shown.png, b"\x89PNG") and shown.text and shown.chart is not None
    assert sorted(shown.formats()) == ["chart", "png", "text"], shown.formats()
    assert not shown.extra


def test_frame():
    """pandas: text, HTML and columns"""
    shown = result("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None], 'c': pd.to_datetime(['2024-01-02', '2024-03-04'])})")
    assert "<table" in shown.html and "a" in shown.text
    assert (shown.data["a"], shown.data["b"]) == ([1, 2], ["x", None])
    assert [each[:10] for each in shown.data["c"]] == ["2024-01-02", "2024-03-04"]


def test_json():
    """lists and dictionaries are JSON too"""
    shown = result("{'a': [1, None]}")
    assert shown.json == {"a": [1, None]} and shown.text == "{'a': [1, None]}"


def test_extra():
    """an unknown kind is kept by its name"""
    assert result("display({'application/x-mine': 'content'}, raw=True)").extra["application/x-mine"] == "content"


def test_order():
    """displayed first, the value last"""
    results = run("display(1)\ndisplay(2)\n3").results
    assert [(each.text, each.is_main_result) for each in results] == [("1", False), ("2", False), ("3", True)]

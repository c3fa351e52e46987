# SPDX-License-Identifier: Apache-2.0
"""From a bundle, {MIME type: data}, to the JSON text of a `result` event; and errors."""
import base64
import datetime
import json
import re

RESULT_MAX = 24 << 20
ERROR_TEXT_MAX = 1 << 20
DEPTH_MAX = 64

FIELDS = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
    "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
    "application/javascript": "javascript", "application/json": "json", "e2b/data": "data", "e2b/chart": "chart",
}
OBJECTS = ("json", "data", "chart")
UNESCAPED = {quote: re.compile(r"(?<!\\)(?:\\\\)*" + quote) for quote in "'\""}


def strip_quotes(text):
    """'abc' is shown as abc; 'a' + 'b' is not the repr of a string and stays."""
    quote = text[:1]
    if len(text) < 2 or quote not in UNESCAPED or text[-1] != quote:
        return text
    inner = text[1:-1]
    return text if UNESCAPED[quote].search(inner) else inner


def plain(value, depth=DEPTH_MAX):
    """The nearest thing that JSON can say: dates in ISO form, NaN as null, numpy's scalars as Python's."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # neither infinite nor NaN
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.date, datetime.time)):
        return None if value != value else value.isoformat()  # pandas' NaT is not itself
    if depth > 0:
        if isinstance(value, dict):
            return {str(key): plain(item, depth - 1) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [plain(item, depth - 1) for item in value]
        if hasattr(value, "tolist"):  # numpy: arrays and scalars; a date without a Python type is a number
            below = value.tolist()
            return str(value) if type(below) is type(value) else plain(below, depth - 1)
    return str(value)


def dump(value):
    """JSON in ASCII. What JSON has no word for is replaced by the nearest."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(plain(value), allow_nan=False)
    if "\\ud" in text:  # perhaps half a character; readers refuse that
        text = json.dumps(json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")))
    return text.encode("ascii")


def _text(data):
    if isinstance(data, (bytes, bytearray)):
        return base64.b64encode(data).decode()
    return data if isinstance(data, str) else str(data)


def _parsed(data):
    """JSON may come as text."""
    if isinstance(data, str):
        try:
            return json.loads(data)
        except ValueError:
            pass
    return data


def fields(bundle, is_main):
    """The fields of an event."""
    found, extra = {}, {}
    for mime, data in bundle.items():
        name = FIELDS.get(mime)
        if data is None:
            continue
        if name in OBJECTS:
            data = _parsed(data)
            if isinstance(data, dict) or (name == "json" and isinstance(data, (list, tuple))):
                found[name] = data
                continue
            name = None
        if name is None:
            extra[str(mime)] = data
        else:
            found[name] = _text(data)
    if "text" in found:
        found["text"] = strip_quotes(found["text"])
    if extra:
        found["extra"] = extra
    found["is_main_result"] = is_main
    return found


def event(bundle, is_main):
    """The bytes of a `result`, or of one that says that it would be too large."""
    data = dump(fields(bundle, is_main))
    if len(data) <= RESULT_MAX:
        return data
    note = (f"(a result of {len(data)} bytes is not shown: at most {RESULT_MAX} are. Write it to a file of the "
            "sandbox and download that)")
    return dump({"text": note, "is_main_result": is_main})


def _cut(text):
    if len(text) <= ERROR_TEXT_MAX:
        return text
    return text[:ERROR_TEXT_MAX] + f"\n({len(text) - ERROR_TEXT_MAX} more characters)"


def error(name, value, traceback):
    """The bytes of an `error`."""
    return dump({"name": _cut(name), "value": _cut(value), "traceback": _cut(traceback)})

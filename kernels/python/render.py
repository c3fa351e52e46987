# SPDX-License-Identifier: Apache-2.0
"""What an object looks like beyond its text: the representations IPython does not know of, or makes otherwise."""
import sys

JSON_VALUES_MAX = 100_000  # of a list or dict that is shown as JSON too


def _discard(_bundle):
    """Until there is a context, nobody listens."""


_publish = _discard


def publish_with(function):
    """Displays go there: a function that takes a bundle, {MIME type: data}."""
    global _publish  # pylint: disable=global-statement
    _publish = function


def publish(bundle):
    _publish(bundle)


def _is_a(value, module, *names):
    """isinstance() for a class of a package that is perhaps not even loaded. Never imports it."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return False
    classes = tuple(filter(None, (getattr(loaded, name, None) for name in names)))
    return isinstance(value, classes)


def whole(value):
    """The bundle of an object that is nobody else's to format, or None."""
    # pylint: disable=import-outside-toplevel
    if _is_a(value, "matplotlib.figure", "Figure"):
        from glovebox_kernel import figures
        return figures.bundle(value)
    if _is_a(value, "PIL.Image", "Image"):
        from glovebox_kernel import pictures
        return pictures.bundle(value)
    return None


def enrich(value, bundle):
    """Adds to a bundle what is ours: JSON of lists and dicts, the values of data frames."""
    if isinstance(value, (list, dict)):
        if "application/json" not in bundle and _is_small(value):
            bundle["application/json"] = value
    elif _is_a(value, "pandas", "DataFrame", "Series"):
        from glovebox_kernel import frames  # pylint: disable=import-outside-toplevel
        frames.enrich(value, bundle)


def _is_small(value):
    """Whether it has few enough values, JSON's own types all of them and no more than 64 levels. Looks at no
    more than that, also when it contains itself."""
    left, level = JSON_VALUES_MAX, [value]
    for _ in range(64):
        below = []
        for item in level:
            left -= len(item)
            if left < 0:
                return False
            if isinstance(item, dict):
                if not all(type(key) in (str, int) for key in item):
                    return False
                item = item.values()
            for child in item:
                if isinstance(child, (list, dict, tuple)):
                    below.append(child)
                elif child is not None and type(child) not in (bool, int, float, str):
                    return False
        if not below:
            return True
        level = below
    return False

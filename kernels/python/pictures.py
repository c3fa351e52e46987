# SPDX-License-Identifier: Apache-2.0
"""Pillow's images: as results, and shown when a cell saves or shows them."""
import io
import os
import sys

from glovebox_kernel import render


def bundle(image):
    """JPEG stays JPEG; everything else is PNG, converted if PNG does not know its colours."""
    if image.format in ("JPEG", "MPO") and image.mode in ("RGB", "L", "CMYK"):
        return {"text/plain": repr(image), "image/jpeg": _encode(image, "JPEG")}
    try:
        png = _encode(image, "PNG")
    except (OSError, ValueError, KeyError):
        png = _encode(image.convert("RGBA"), "PNG")
    return {"text/plain": repr(image), "image/png": png}


def _encode(image, kind):
    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def _is_matplotlib(frame):
    """savefig() saves through Pillow; its figure is shown as a figure."""
    return frame.f_globals.get("__name__", "").partition(".")[0] == "matplotlib"


def install(image_class):
    original = image_class.save

    def save(self, fp, format=None, **params):  # pylint: disable=redefined-builtin
        original(self, fp, format, **params)
        caller = sys._getframe(1)  # pylint: disable=protected-access
        if isinstance(fp, (str, os.PathLike)) and not _is_matplotlib(caller):
            render.publish(bundle(self))

    def show(self, *_args, **_kwargs):
        """There is no screen: the image becomes a result."""
        render.publish(bundle(self))

    save.__doc__ = original.__doc__
    image_class.save, image_class.show = save, show

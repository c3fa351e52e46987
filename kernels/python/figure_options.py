# SPDX-License-Identifier: Apache-2.0
"""How figures are shown. Apart from figures.py, which cannot be loaded without matplotlib."""
import sys

from glovebox_kernel import interrupt

FORMATS = {
    "png": ("image/png", "png", 1),
    "retina": ("image/png", "png", 2),
    "png2x": ("image/png", "png", 2),
    "jpeg": ("image/jpeg", "jpeg", 1),
    "jpg": ("image/jpeg", "jpeg", 1),
    "svg": ("image/svg+xml", "svg", 1),
    "pdf": ("application/pdf", "pdf", 1),
}

format_name = "png"
print_kwargs = {"bbox_inches": "tight"}
close_figures = True


@interrupt.raises_in
def flush():
    """The end of a cell: figures that are open are shown."""
    interrupt.check()
    figures = sys.modules.get("glovebox_kernel.figures")
    if figures is not None:
        figures.flush()

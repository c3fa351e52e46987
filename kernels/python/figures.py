# SPDX-License-Identifier: Apache-2.0
"""A backend for matplotlib: figures are drawn by Agg and shown as results, by show() and at the end of a cell."""
import io

import matplotlib
from matplotlib import font_manager
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from glovebox_kernel import figure_options, render

BACKEND = "module://" + __name__


class FigureCanvas(FigureCanvasAgg):
    """Agg's, under the name that matplotlib looks for in a backend."""


FigureManager = FigureManagerBase


def new_figure_manager_given_figure(num, figure):
    return FigureManager(FigureCanvas(figure), num)


def new_figure_manager(num, *args, FigureClass=Figure, **kwargs):  # pylint: disable=invalid-name
    return new_figure_manager_given_figure(num, FigureClass(*args, **kwargs))


def draw_if_interactive():
    """Figures are drawn when they are shown."""


def show(*_args, **_kwargs):
    """Shows every figure that is open. They are closed, so that the next cell begins with none."""
    managers = Gcf.get_all_fig_managers()
    try:
        for manager in managers:
            render.publish(bundle(manager.canvas.figure))
    finally:
        if managers and figure_options.close_figures:
            _pyplot().close("all")


def flush():
    """The end of a cell. Who chose another backend shows figures in its own way."""
    if Gcf.figs and matplotlib.get_backend() == BACKEND:
        show()


def _pyplot():
    """It loads us, so we cannot load it before."""
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    return pyplot


def activate():
    _pyplot().switch_backend(BACKEND)


def _picture(figure):
    mime, kind, scale = figure_options.FORMATS[figure_options.format_name]
    out = io.BytesIO()
    options = {"dpi": figure.dpi * scale, "facecolor": figure.get_facecolor(), "edgecolor": figure.get_edgecolor(),
               **figure_options.print_kwargs}
    # A figure that was made without pyplot may have a canvas that draws nothing.
    FigureCanvasAgg.print_figure(figure.canvas, out, format=kind, **options)
    data = out.getvalue()
    return mime, data.decode("utf-8") if kind == "svg" else data


def bundle(figure):
    """The picture of a figure and what it says in numbers."""
    from glovebox_kernel import charts  # pylint: disable=import-outside-toplevel
    shown = {"text/plain": repr(figure)}
    if figure.axes or figure.lines:
        mime, data = _picture(figure)
        shown[mime] = data
    shown["e2b/chart"] = charts.extract(figure)
    return shown


def warm_up():
    """Fonts are looked up and glyphs loaded once, before any fork."""
    activate()
    figure = _pyplot().figure()
    axes = figure.add_subplot()
    axes.plot([1, 2], label="a")
    axes.set_title("b")
    axes.legend()
    bundle(figure)
    _pyplot().close("all")
    _close_fonts()


def _close_fonts():
    """Fonts that were drawn with are kept open, and no descriptor may go over into a sandbox."""
    for name in ("_get_font", "get_font"):
        forget = getattr(getattr(font_manager, name, None), "cache_clear", None)
        if forget is not None:
            forget()

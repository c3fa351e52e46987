# SPDX-License-Identifier: Apache-2.0
"""`%config InlineBackend.figure_format = 'svg'`, with which notebooks begin."""
from traitlets import Bool, Dict, Enum
from traitlets.config import Configurable

from glovebox_kernel import figure_options


class InlineBackend(Configurable):
    """How figures are shown."""

    figure_format = Enum(list(figure_options.FORMATS), "png", help="of the pictures of figures").tag(config=True)
    print_figure_kwargs = Dict(figure_options.print_kwargs, help="for Figure.savefig()").tag(config=True)
    close_figures = Bool(True, help="whether a figure that was shown is closed").tag(config=True)


def _store(change):
    name = {"figure_format": "format_name", "print_figure_kwargs": "print_kwargs"}.get(change["name"], change["name"])
    setattr(figure_options, name, change["new"])


def register(shell):
    backend = InlineBackend(parent=shell)
    backend.observe(_store, ["figure_format", "print_figure_kwargs", "close_figures"])
    shell.configurables.append(backend)

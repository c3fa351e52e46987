# SPDX-License-Identifier: Apache-2.0
"""How IPython's shell shows things: as results, through the function that its Engine has been given."""
import warnings

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.formatters import DisplayFormatter

from glovebox_kernel import render

# Types that have a text and no other format of IPython's, so that one formatter is asked and not eleven.
SIMPLE = frozenset((bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset))


class Formatter(DisplayFormatter):
    """Adds our representations. An object that cannot be formatted does not end its cell."""

    def format(self, obj, include=None, exclude=None):
        shell = self.parent
        before, shell.format_problems = shell.format_problems, []
        try:
            bundle, metadata = self._format(obj, include, exclude)
            problems = shell.format_problems
        finally:
            shell.format_problems = before
        shell.tell_format_problems(problems, bool(bundle))
        return bundle, metadata

    def _is_simple(self, obj):
        kind = type(obj)
        return kind in SIMPLE and not any(kind in formatter.type_printers for name, formatter in self.formatters.items()
                                          if name != "text/plain")

    def _format(self, obj, include, exclude):
        if include or exclude:
            return super().format(obj, include=include, exclude=exclude)
        bundle = render.whole(obj)
        if bundle is not None:
            return bundle, {}
        if self._is_simple(obj):
            text = self.formatters["text/plain"](obj)
            bundle, metadata = {} if text is None else {"text/plain": text}, {}
        else:
            bundle, metadata = super().format(obj)
        if bundle:
            render.enrich(obj, bundle)
        return bundle, metadata


class Hook(DisplayHook):
    """The value of a cell's last expression."""

    def quiet(self):
        """Tokens are looked at only where there is something to find."""
        cells = self.shell.history_manager.input_hist_parsed
        return bool(cells) and ";" in cells[-1] and super().quiet()

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.publish(format_dict, True)

    def log_output(self, format_dict):
        """Out has the values; their texts are kept for a history file that there is not."""

    def finish_displayhook(self):
        pass

    def cull_cache(self):
        """The oldest values of Out go when there are many. Nobody needs to be warned."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            super().cull_cache()


class Publisher(DisplayPublisher):
    """display(). An update of something displayed before is not shown again, as E2B has it."""

    # pylint: disable-next=arguments-differ
    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_):
        if not update:
            self.shell.publish(dict(data), False)

    def clear_output(self, wait=False):
        """What was sent was sent."""

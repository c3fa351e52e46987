# SPDX-License-Identifier: Apache-2.0
"""Which cells IPython would leave as they are: most. To find that out its own way it takes them apart into tokens, and in a
new context that brings a sixth of all pages which its first cell writes to."""
import re

from IPython.core.autocall import IPyAutocall
from IPython.core.macro import Macro

# Whatever IPython's syntax begins with, in any place where it could mean that; lines that end in other ways than ours do;
# an indented beginning; prompts that were copied along.
SPECIAL = re.compile(r"[%!?\r\v\f\x1c-\x1e\x85\u2028\u2029]|^\s*(?:[,;/]|>>>|\.\.\.)|^(?:\[nav\]|\[ins\])? ?In \[|\A\s", re.MULTILINE)
WORD = re.compile(r"[\w.*]*")


class Cells:
    """Of one shell."""

    def __init__(self, shell):
        self._shell = shell
        self._usual = [list(transforms) for transforms in self._transforms()]

    def _transforms(self):
        """Everything that can change a cell before it is parsed, and to which cells can add something of their own."""
        shell, manager, lines = self._shell, self._shell.input_transformer_manager, self._shell.prefilter_manager
        return [manager.cleanup_transforms, manager.line_transforms, manager.token_transformers, shell.input_transformers_post,
                lines.transformers, lines.checkers]

    def _is_command(self, line):
        """Whether its first word alone may make a line something else: the name of a magic, a macro, `exit`."""
        word = WORD.match(line)[0]
        return (self._shell.find_line_magic(word) is not None or
                isinstance(self._shell.user_ns.get(word), (IPyAutocall, Macro)))

    def are_python(self, cell):
        """Whether this one is nothing but Python. When in doubt it is not."""
        if not cell or SPECIAL.search(cell) or self._shell.autocall or self._transforms() != self._usual:
            return False
        is_one_line = "\n" not in cell[:-1]
        return not (is_one_line and self._is_command(cell))

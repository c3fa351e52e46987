# SPDX-License-Identifier: Apache-2.0
"""Where cells import from. The kernel starts with -I, so that neither a variable nor a file of the sandbox
changes what it loads itself; a cell has what any Python has: its directory, PYTHONPATH, the user's packages."""
import importlib
import os
import site
import sys

USER_PACKAGES = ".local/lib/python%d.%d/site-packages" % sys.version_info[:2]


def install():
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [""] + given
    _add_user_packages()


def refresh():
    """After a program ran, which has perhaps installed something."""
    importlib.invalidate_caches()
    _add_user_packages()


def _add_user_packages():
    if os.environ.get("PYTHONNOUSERSITE"):
        return
    path = os.path.join(os.path.expanduser("~"), USER_PACKAGES)
    if os.access(path, os.F_OK) and path not in sys.path and os.path.isdir(path):  # mostly it is not there
        site.addsitedir(path)

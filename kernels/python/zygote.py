# SPDX-License-Identifier: Apache-2.0
"""A Python that has everything loaded and runs nothing: contexts are forked from it.

    python3 -I zygote.py [PACKAGE...]

The warden starts it, alone in namespaces of its own, as a user of no power. It loads the kernel and the packages
and then stands in zygote.so, which waits for the warden's orders and comes back only in a forked child that is
already an ordinary process of some sandbox: there the kernel serves. Nothing of a sandbox is ever read or run in
the zygote itself."""
import ctypes
import gc
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "/opt/glovebox/lib/zygote.so"
SOCK_FD, PROC_FD = 3, 4
REQUESTS_FD, EVENTS_FD = 3, 4
EXIT_CANNOT = 78  # trying again will not help

# What a command of the sandbox has; the sandbox's own variables come with the first cell.
ENVIRONMENT = {
    "PATH": "/opt/glovebox/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/home/user",
    "USER": "user",
    "LOGNAME": "user",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
}


def cannot(problem):
    os.write(2, f"{problem}\n".encode(errors="replace"))
    os._exit(EXIT_CANNOT)  # pylint: disable=protected-access


def load_kernel(packages):
    spec = importlib.util.spec_from_file_location("glovebox_kernel_main", os.path.join(HERE, "kernel.py"))
    kernel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernel)
    kernel.load(packages)
    return kernel


def load_library():
    library = ctypes.PyDLL(LIBRARY)  # PyDLL: the interpreter's lock stays ours
    library.zygote_compact.restype = None
    return library


def release_descriptors():
    """What packages keep open though they could open it again."""
    fonts = sys.modules.get("matplotlib.font_manager")
    if hasattr(fonts, "_get_font"):
        fonts._get_font.cache_clear()  # pylint: disable=protected-access
    shell_io = sys.modules.get("IPython.utils.io")
    if hasattr(shell_io, "devnull"):
        shell_io.devnull.close()
    gc.collect()


def tell_descriptors():
    """A context gets none but its own, so an object that holds another one is broken there: better to know."""
    directory = os.open("fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=PROC_FD)
    for name in os.listdir(directory):
        if int(name) > PROC_FD and int(name) != directory:
            try:
                target = os.readlink(name, dir_fd=directory)
            except OSError:
                continue  # that of listdir itself
            os.write(2, f"{target} stays open\n".encode(errors="replace"))
    os.close(directory)


def stir_openssl():
    """The first call sets the library up, which takes milliseconds and megabytes: that is for the zygote."""
    ssl = sys.modules.get("_ssl")
    if ssl is not None:
        ssl.RAND_add(os.urandom(32), 32.0)


def keep_openssl_apart():
    """Its random numbers tell a child from its parent by the pid, which in another pid namespace may be the same: of a
    context, or of a process that a context forks."""
    parent = os.getpid()

    def stir():
        if os.getpid() == parent:
            stir_openssl()

    os.register_at_fork(after_in_child=stir)


def become_context(kernel, after_fork):
    after_fork()
    sys.argv[:] = [os.path.join(HERE, "kernel.py")]
    kernel.after_fork()
    kernel.serve(REQUESTS_FD, EVENTS_FD)


def main():
    try:
        kernel = load_kernel(sys.argv[1:])
        library = load_library()
    except Exception as problem:  # pylint: disable=broad-except
        cannot(f"{type(problem).__name__}: {problem}")
    release_descriptors()
    kernel.before_forks(ENVIRONMENT)
    stir_openssl()
    keep_openssl_apart()
    tell_descriptors()
    library.zygote_compact(PROC_FD)
    after_fork = ctypes.pythonapi.PyOS_AfterFork_Child  # found here, once
    ctypes.pythonapi.PyOS_BeforeFork()  # once for all children: nothing happens here in between
    result = library.zygote_serve(SOCK_FD)
    if result == 0:
        become_context(kernel, after_fork)
    if result < 0:
        cannot(f"zygote_serve: {os.strerror(-result)}")
    os._exit(0)  # pylint: disable=protected-access


main()

"""Stops single threads of a process, as a debugger does: the rest of it goes on."""

import contextlib
import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long
# ptrace(2), waitpid(2).
_DETACH, _SEIZE, _INTERRUPT, _WALL = 17, 0x4206, 0x4207, 0x40000000


def threads(pid, name):
    """The ids of the threads of that name."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm") as file:
            if file.read().strip() == name:
                found.append(int(thread))
    return found


@contextlib.contextmanager
def stopped(pid, name):
    """No thread of that name runs inside. The process has to be a child of ours; one thread of ours may call this."""
    found = threads(pid, name)
    assert found, f"no thread {name}: {os.listdir(f'/proc/{pid}/task')}"
    for thread in found:
        _trace(_SEIZE, thread)
        _trace(_INTERRUPT, thread)
        os.waitpid(thread, _WALL)
    try:
        yield
    finally:
        for thread in found:
            _trace(_DETACH, thread)


def _trace(request, thread):
    if _libc.ptrace(request, thread, None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace: {os.strerror(error)}")

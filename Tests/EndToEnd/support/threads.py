"""Stops single threads of a process, as a debugger does: the rest of it goes on."""

import contextlib
import ctypes
import errno
import os
import pathlib

from support import freezing
from support.deadline import until

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long
# ptrace(2), waitpid(2).
_DETACH, _SEIZE, _INTERRUPT, _WALL = 17, 0x4206, 0x4207, 0x40000000


def threads(pid, *names):
    """The ids of the threads of these names."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().strip() in names:
                found.append(int(task.name))
    return sorted(found)


@contextlib.contextmanager
def stopped(pid, name):
    """No thread of that name runs inside."""
    freezing.spared.add(pid)
    found = threads(pid, name)
    assert found, f"{pid} has no thread {name}"
    for thread in found:
        until(lambda: stop(thread), what=f"{name} stands still")
    try:
        yield
    finally:
        for thread in found:
            let_go_on(thread)


def stop(thread):
    """The process has to be a child of ours, and only the thread of ours that calls this may let the other go on.

    Returns whether it stands still; it may have ended, or be held by somebody else."""
    if _libc.ptrace(_SEIZE, thread, None, None) != 0:
        error = ctypes.get_errno()
        if error in (errno.ESRCH, errno.EPERM):
            return False
        raise OSError(error, f"ptrace: {os.strerror(error)}")
    _libc.ptrace(_INTERRUPT, thread, None, None)
    _, status = os.waitpid(thread, _WALL)
    if os.WIFSTOPPED(status) and not status >> 16:
        # It was about to take a signal, and takes it.
        _libc.ptrace(_DETACH, thread, None, os.WSTOPSIG(status))
        return False
    return os.WIFSTOPPED(status)


def is_wanted(thread):
    """Whether something has become of one that we hold: it was killed, or its whole process is to stand still."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(thread, _WALL | os.WNOHANG)[0] != 0
    return True


def let_go_on(thread):
    if _libc.ptrace(_DETACH, thread, None, None) != 0:
        # It was killed, and its process ends when we have heard of it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(thread, _WALL)

"""Processes that stand still: SIGSTOP takes effect a moment after it is sent, thread by thread, and a busy machine makes it a long one."""

import contextlib
import os
import pathlib
import signal

from support.deadline import until

#: What tests have frozen, so that nobody else lets it run again (support/unfairness.py).
frozen = set()
#: What nobody else is to stop: tests stop parts of it, or hold it against a clock.
spared = set()


def freeze(pid):
    """Returns when no thread of the process runs any more."""
    frozen.add(pid)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: all(_state(task) in ("T", "Z") for task in pathlib.Path(f"/proc/{pid}/task").iterdir()), what=f"{pid} stands still")


def is_running(pid):
    return _state(pathlib.Path(f"/proc/{pid}")) not in ("T", "Z")


def _state(task):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return (task / "stat").read_text().rsplit(")", 1)[1].split()[0]
    return "Z"

"""What the figures were taken on."""

import os
import pathlib
import platform
import subprocess
import time


def conditions(client, is_alone):
    """Names and values, as they are shown."""
    return [
        ["Date", time.strftime("%Y-%m-%d %H:%M %Z")],
        ["Commit", commit()],
        ["CPU", f"{os.cpu_count()} × {processor()}"],
        ["Kernel", f"Linux {platform.release()}"],
        ["Network", "the loopback interface of a namespace of its own" if is_alone else "the machine's loopback interface"],
        ["Load client", client.name],
        ["Load average at the start", load_average()],
    ]


def load_average():
    return f"{os.getloadavg()[0]:.1f}"


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit():
    try:
        name, changes = (subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()
                         for arguments in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--untracked-files=no"]))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name} with uncommitted changes" if changes else name

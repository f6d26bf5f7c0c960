"""What the figures were taken on."""

import os
import pathlib
import platform
import subprocess
import time


def conditions(programs, loops):
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown")
    version = subprocess.run([programs.roost, "--version"], capture_output=True, text=True).stdout.strip()
    return (f"roost {version} with {loops} loop{'s' if loops != 1 else ''}, {time.strftime('%Y-%m-%d %H:%M')}; "
            f"{os.cpu_count()} × {cpu}, Linux {platform.release()}; "
            f"load average at the start {os.getloadavg()[0]:.1f} (figures taken on a busy machine are noise)")

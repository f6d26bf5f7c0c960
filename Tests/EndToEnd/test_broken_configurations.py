"""Hundreds of broken configurations: each ends in one sentence that names what is wrong, and nothing is ever half started."""

import concurrent.futures
import json
import os
import re
import subprocess

from support.broken import SECRET, Maker
from support.hub import BINARY

SEED = 8
#: Right in every way; nothing listens there, and nothing is to be tried.
RIGHT = {"ROOST_DATABASE_URL": "postgres://roost@127.0.0.1:1/none", "ROOST_JWT_SECRET": SECRET}
PLAIN = {key: value for key, value in os.environ.items() if not key.startswith(("ROOST_", "PG", "IOS_LIVE"))}


def run(command, broken, path, folder):
    arguments = broken.arguments if "--config" in broken.arguments or "ROOST_CONFIG" in broken.variables else \
        ["--config", str(path), *broken.arguments]
    return subprocess.run(
        [BINARY, *command, *arguments], env={**PLAIN, **RIGHT, **broken.variables}, cwd=folder, capture_output=True, text=True,
        errors="replace", stdin=subprocess.DEVNULL, timeout=60)


def wrong(broken, path, result):
    """What is not as it should be in how a command ended, or None."""
    if result.returncode != broken.status:
        return f"status {result.returncode}"
    if result.stdout:
        return f"says {result.stdout[:200]!r}"
    if not result.stderr.startswith("Error: "):
        return "is no sentence"
    if broken.status != 78:
        return None
    if result.stderr.count("\n") != 1 or len(result.stderr) > 800 or not result.stderr.endswith((".\n", "?\n")):
        return "is not one sentence"
    if SECRET in result.stderr or "ss:word" in result.stderr:
        return "shows a secret"
    missing = [name for name in broken.names if re.sub(r"\bFILE\b", str(path), name) not in result.stderr]
    return f"does not name {missing}" if missing else None


def test_each_is_one_sentence_and_78(tmp_path):
    nothing = tmp_path / "nothing.yaml"
    nothing.touch()
    table = subprocess.run(
        [BINARY, "config", "print", "--json", "--config", nothing], env={**PLAIN, **RIGHT}, capture_output=True, text=True, check=True)
    (tmp_path / "made").mkdir()
    all_broken = Maker(json.loads(table.stdout), SEED, tmp_path / "made").all()
    assert len(all_broken) >= 300

    def judge(numbered):
        number, broken = numbered
        path = tmp_path / f"broken-{number}.yaml"
        path.write_bytes(broken.text if isinstance(broken.text, bytes) else broken.text.encode())
        checked = run(["config", "check"], broken, path, tmp_path)
        problem = wrong(broken, path, checked)
        if problem is None and number % 9 == 0:
            served = run(["serve"], broken, path, tmp_path)
            problem = wrong(broken, path, served) and f"serve {wrong(broken, path, served)}"
            if problem is None and broken.status == 78 and served.stderr != checked.stderr:
                problem = f"serve says {served.stderr!r}"
            checked = served if problem else checked
        return problem and f"{broken.what}: {problem}: {checked.stderr[:600]!r}"

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        problems = [problem for problem in pool.map(judge, enumerate(all_broken)) if problem]
    assert not problems, f"{len(problems)} of {len(all_broken)}:\n" + "\n".join(problems)


def test_what_they_are_made_from_is_right(tmp_path):
    """Or all of the above could be refused for something else."""
    path = tmp_path / "right.yaml"
    path.write_text("node.name: roost\nlimits.private_only: true\ndrain.delay_seconds: 0\n")
    result = subprocess.run(
        [BINARY, "config", "check", "--config", str(path)], env={**PLAIN, **RIGHT}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_variables_of_others_stop_nothing(tmp_path):
    """Kubernetes' for a service named roost, roost-load's token, a slip: no value of them is shown, and no start ends for them."""
    link = {
        "ROOST_PORT": "tcp://10.96.7.7:4000", "ROOST_SERVICE_HOST": "10.96.7.7", "ROOST_SERVICE_PORT": "4000",
        "ROOST_PORT_4000_TCP": "tcp://10.96.7.7:4000", "ROOST_PORT_4000_TCP_ADDR": "10.96.7.7"}
    others = {"ROOST_TOKEN": "eyJhbGciOiJIUzI1NiJ9.hidden", "ROOST_JWT_SECERT": "hidden-value", "ROOST_COLOUR": "hidden-colour"}
    result = subprocess.run(
        [BINARY, "config", "check"], env={**PLAIN, **RIGHT, **link, **others}, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0 and "configuration is valid" in result.stdout, result.stderr
    warnings = result.stderr.splitlines()
    assert len(warnings) == 3 and all(" warning [" in line for line in warnings), result.stderr
    assert "ROOST_JWT_SECERT" in warnings[1] and "did you mean ROOST_JWT_SECRET?" in warnings[1]
    assert "ROOST_PORT and 4 more" in warnings[2]
    assert "hidden" not in result.stderr and "10.96" not in result.stderr and "ROOST_TOKEN" not in result.stderr

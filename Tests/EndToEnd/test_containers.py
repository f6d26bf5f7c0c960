"""config/Dockerfile and config/compose.yaml. Nobody builds images here, so what can be known without one is looked at."""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "config"
DOCKERFILE = (CONFIG / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((CONFIG / "compose.yaml").read_text())
HUBS = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "roost"}


@pytest.fixture
def settings(hub):
    return {setting["variable"]: setting for setting in json.loads(hub.run("config", "print", "--json").stdout)}


def test_the_linter_has_nothing_to_say_about_the_dockerfile():
    linter = pathlib.Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, "--no-color", CONFIG / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_they_set_what_there_is_to_set(settings):
    used = {name for service in HUBS.values() for name in service["environment"]}
    used |= set(re.findall(r"\b(ROOST_[A-Z_]+)=", DOCKERFILE))
    assert len(used) > 3 and used <= set(settings)


def test_they_run_commands_that_there_are(hub):
    commands = [service["command"][0] for service in HUBS.values()]
    commands += re.findall(r'^CMD \["(\w+)"\]', DOCKERFILE, re.MULTILINE)
    assert set(commands) == {"migrate", "serve"}
    for command in commands:
        hub.run(command, "--help")


@pytest.mark.parametrize("name", HUBS)
def test_the_hub_takes_the_settings(hub, name):
    given = {key: re.sub(r"\$\{\w+(:\?[^}]*)?\}", "x" * 32, value) for key, value in HUBS[name]["environment"].items()}
    hub.run("config", "check", **given)


def test_ports_and_times_are_those_of_the_hub(settings):
    ports = {str(settings[f"ROOST_{name}_PORT"]["default"]) for name in ("HTTP", "OPS")}
    assert set(re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)[1].split()) == ports
    published = HUBS["roost"]["ports"]
    assert published == [f"127.0.0.1:{port}:{port}" for port in (settings["ROOST_HTTP_PORT"]["default"],)]
    patience = int(HUBS["roost"]["stop_grace_period"].rstrip("s"))
    assert patience > int(settings["ROOST_DRAIN_SECONDS"]["default"]) + int(settings["ROOST_DRAIN_DELAY_SECONDS"]["default"])

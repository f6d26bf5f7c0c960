"""config/Dockerfile and the compose files beside it. Nobody builds images here, so what can be known without one is looked at."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from compose_spec import PyCompose

from support.deadline import until
from support.redis import ACL, Redis, RedisError

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "config"
DOCKERFILE = (CONFIG / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((CONFIG / "compose.yaml").read_text())
CLUSTER = yaml.safe_load((CONFIG / "compose.cluster.yaml").read_text())


def hubs_of(compose):
    return {name: service for name, service in compose["services"].items() if service["image"] == "roost"}


HUBS = hubs_of(COMPOSE)
MEMBERS = {name: service for name, service in hubs_of(CLUSTER).items() if service["command"] == ["serve"]}


@pytest.fixture
def settings(hub):
    return {setting["variable"]: setting for setting in json.loads(hub.run("config", "print", "--json").stdout)}


def test_the_linter_has_nothing_to_say_about_the_dockerfile():
    linter = pathlib.Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, "--no-color", CONFIG / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("compose", [COMPOSE, CLUSTER], ids=["compose.yaml", "compose.cluster.yaml"])
def test_the_compose_files_are_what_the_specification_says(compose):
    # The model takes a merged mapping, and not the `<<` that merges it.
    assert PyCompose.from_yaml(yaml.safe_dump(compose)).service_names()
    wrong = {**compose, "services": {**compose["services"], "migrate": {**compose["services"]["migrate"], "ports": "many"}}}
    with pytest.raises(ValueError, match="services.migrate.ports"):
        PyCompose.from_yaml(yaml.safe_dump(wrong))


def test_they_set_what_there_is_to_set(settings):
    used = {name for service in [*HUBS.values(), *MEMBERS.values()] for name in service["environment"]}
    used |= set(re.findall(r"^ENV (ROOST_[A-Z_]+)=", DOCKERFILE, re.MULTILINE))
    assert len(used) > 3 and used <= set(settings)


def test_they_run_commands_that_there_are(hub):
    commands = [service["command"][0] for service in HUBS.values()]
    commands += re.findall(r'^CMD \["(\w+)"\]', DOCKERFILE, re.MULTILINE)
    assert set(commands) == {"migrate", "serve"}
    for command in commands:
        hub.run(command, "--help")


def filled(text):
    return re.sub(r"\$\{\w+(:\?[^}]*)?\}", "x" * 32, str(text))


@pytest.mark.parametrize("service", [*HUBS.values(), *MEMBERS.values()], ids=[*HUBS, *MEMBERS])
def test_the_hub_takes_the_settings(hub, service):
    hub.run("config", "check", **{key: filled(value) for key, value in service["environment"].items()})


def test_ports_and_times_are_those_of_the_hub(settings):
    ports = {str(settings[f"ROOST_{name}_PORT"]["default"]) for name in ("HTTP", "OPS")}
    assert set(re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)[1].split()) == ports
    published = HUBS["roost"]["ports"]
    assert published == [f"127.0.0.1:{port}:{port}" for port in (settings["ROOST_HTTP_PORT"]["default"],)]
    patience = int(HUBS["roost"]["stop_grace_period"].rstrip("s"))
    assert patience > int(settings["ROOST_DRAIN_SECONDS"]["default"]) + int(settings["ROOST_DRAIN_DELAY_SECONDS"]["default"])


def test_hubs_of_a_cluster_have_names_of_their_own_and_time_to_drain(settings):
    names = [service["environment"]["ROOST_NODE_NAME"] for service in MEMBERS.values()]
    assert names == list(MEMBERS) and len(names) == 2
    for service in MEMBERS.values():
        patience = int(service["stop_grace_period"].rstrip("s"))
        drain = settings["ROOST_DRAIN_SECONDS"]["default"] + service["environment"]["ROOST_DRAIN_DELAY_SECONDS"]
        assert patience > drain


def test_the_redis_of_a_cluster_has_the_user_of_the_hubs_and_nobody_else():
    lines, password = filled(CLUSTER["configs"]["redis"]["content"]).splitlines(), "x" * 32
    assert f"user roost on >{password} {ACL}" in lines
    redis = Redis(*lines)
    try:
        redis.start(wait=False)
        until(lambda: entered(redis, password), what="Redis answers")
        for command in [("GET", "x"), ("AUTH", password), ("AUTH", "default", "")]:
            with pytest.raises(RedisError, match="NOAUTH|WRONGPASS"):
                redis.ask(*command)
    finally:
        redis.remove()


def entered(redis, password):
    try:
        return redis.ask("AUTH", "roost", password) == "OK"
    except OSError:
        return False


def test_the_balancer_of_a_cluster_knows_its_hubs(tmp_path):
    text = CLUSTER["configs"]["haproxy"]["content"]
    servers = re.findall(r"^ +server (\w+) (\w+):(\d+)$", text, re.MULTILINE)
    assert servers == [(name, name, "4000") for name in MEMBERS]
    (tmp_path / "haproxy.cfg").write_text(text)
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/bin")
    assert program, "scripts/setup.sh --tests installs haproxy"
    done = subprocess.run([program, "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

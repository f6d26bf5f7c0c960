"""config/kubernetes: held against Kubernetes' own schemas, and against the hub that it starts. No cluster runs here."""

import json
import pathlib
import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "config/kubernetes"
PAGE = (FOLDER.parents[1] / "docs/kubernetes.md").read_text()
VERSION = re.search(r'static let version = "(.+)"', (FOLDER.parents[1] / "Sources/roost/Roost.swift").read_text())[1]
#: The oldest and the newest one that the manifests are for.
KUBERNETES = ("1.28", "1.37")
KUSTOMIZATIONS = {path.parent.name: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*/kustomization.yaml")}
MANIFESTS = [(path.relative_to(FOLDER), manifest)
             for path in sorted(FOLDER.glob("*/*.yaml")) if path.name not in ("kustomization.yaml", "alone.yaml")
             for manifest in yaml.safe_load_all(path.read_text())]
WORKLOADS = [manifest for _, manifest in MANIFESTS if manifest["kind"] in ("StatefulSet", "Job")]


def one(kind, name):
    found = [manifest for _, manifest in MANIFESTS if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1
    return found[0]


HUB = one("StatefulSet", "roost")
POD = HUB["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
ENVIRONMENT = {entry["name"]: entry for entry in CONTAINER["env"]}


def containers(workload):
    pod = workload["spec"]["template"]["spec"]
    return pod.get("initContainers", []) + pod["containers"]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("path, manifest", MANIFESTS, ids=[f"{path}-{manifest['kind']}" for path, manifest in MANIFESTS])
def test_kubernetes_schema_has_nothing_against_it(path, manifest, version):
    kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schema_finds_a_mistake():
    wrong = {**HUB, "spec": {**HUB["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES[-1], strict=True)


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_a_kustomization_names_all_that_is_beside_it(name):
    spec = KUSTOMIZATIONS[name]
    files = {patch["path"] for patch in spec.get("patches", [])}
    files |= {file for generator in spec.get("configMapGenerator", []) for file in generator["files"]}
    files |= {resource for resource in spec["resources"] if not resource.startswith("../")}
    assert files == {path.name for path in (FOLDER / name).iterdir()} - {"kustomization.yaml"}
    for resource in spec["resources"]:
        assert (FOLDER / name / resource).resolve().exists()
    for image in spec.get("images", []):
        assert image["newTag"] == VERSION, "of the tree's version"
    assert f"config/kubernetes/{name}" in PAGE, "the page says what it is for"


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not here, and nothing else renders kustomizations")
@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_what_kubectl_makes_of_a_kustomization_is_valid(name):
    done = subprocess.run(["kubectl", "kustomize", FOLDER / name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rendered = list(yaml.safe_load_all(done.stdout))
    for manifest in rendered:
        kubernetes_validate.validate(manifest, KUBERNETES[-1], strict=True)
    environment = {entry["name"] for manifest in rendered if manifest["kind"] == "StatefulSet"
                   for entry in manifest["spec"]["template"]["spec"]["containers"][0].get("env", [])}
    assert ("ROOST_CLUSTER_URL" in environment) == (name == "hubs"), "one hub alone has no Redis"


def test_nobody_gets_the_variables_of_services_or_more_rights_than_it_needs():
    for workload in WORKLOADS:
        pod = workload["spec"]["template"]["spec"]
        assert pod["enableServiceLinks"] is False and pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(workload):
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"]


def test_the_user_is_that_of_the_image():
    user = re.search(r"^USER (\d+):(\d+)$", (FOLDER.parent / "Dockerfile").read_text(), re.MULTILINE)
    for workload in (HUB, one("Job", "roost-migrate")):
        context = workload["spec"]["template"]["spec"]["securityContext"]
        assert (str(context["runAsUser"]), str(context["runAsGroup"])) == user.groups()


def test_secrets_come_by_reference_and_the_page_says_how_they_are_made():
    keys = {entry["valueFrom"]["secretKeyRef"]["key"] for workload in WORKLOADS for container in containers(workload)
            for entry in container.get("env", []) if "secretKeyRef" in entry.get("valueFrom", {})}
    assert keys == set(re.findall(r"--from-literal=([a-z-]+)=", PAGE))
    assert keys == {"database-url", "owner-url", "jwt-secret", "cluster-url", "ops-token"}
    for name in ("ROOST_DATABASE_URL", "ROOST_JWT_SECRET", "ROOST_CLUSTER_URL", "ROOST_OPS_TOKEN"):
        assert "value" not in ENVIRONMENT[name]
    assert "--from-file=users.acl" in PAGE


#: What stands for what a cluster would fill in.
FILLED = {
    "ROOST_NODE_NAME": "roost-0", "ROOST_DATABASE_URL": "postgres://roost_hub@db/app", "ROOST_JWT_SECRET": "x" * 32,
    "ROOST_CLUSTER_URL": "redis://roost:secret@roost-redis", "ROOST_OPS_TOKEN": "y" * 40}


def test_the_hub_takes_the_settings_and_keeps_its_name(hub):
    assert ENVIRONMENT["ROOST_NODE_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    given = {name: FILLED.get(name) or entry["value"] for name, entry in ENVIRONMENT.items()}
    hub.run("config", "check", **given)
    # One hub alone lacks what its patch takes away, and nothing else.
    patch = yaml.safe_load((FOLDER / "one/alone.yaml").read_text())
    gone = {entry["name"] for entry in patch["spec"]["template"]["spec"]["containers"][0]["env"] if entry.get("$patch") == "delete"}
    assert gone == {"ROOST_CLUSTER_URL"} and patch["spec"]["replicas"] == 1
    hub.run("config", "check", **{name: value for name, value in given.items() if name not in gone})
    for container in [*containers(HUB), *containers(one("Job", "roost-migrate"))]:
        hub.run(container["args"][0], "--help")


def test_probes_ask_the_right_pages_of_the_right_port():
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert ports == {"clients": 4000, "operator": 4001}
    for probe, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        assert CONTAINER[probe]["httpGet"] == {"path": path, "port": "operator"}


def test_there_is_time_to_drain_and_to_be_noticed(hub):
    settings = {setting["variable"]: setting for setting in json.loads(hub.run("config", "print", "--json").stdout)}
    drain = settings["ROOST_DRAIN_SECONDS"]["default"] + int(ENVIRONMENT["ROOST_DRAIN_DELAY_SECONDS"]["value"])
    assert POD["terminationGracePeriodSeconds"] > drain
    readiness = CONTAINER["readinessProbe"]
    assert int(ENVIRONMENT["ROOST_DRAIN_DELAY_SECONDS"]["value"]) > readiness["periodSeconds"] * readiness["failureThreshold"]


def test_services_budgets_and_policies_select_the_hubs():
    labels = HUB["spec"]["template"]["metadata"]["labels"]
    assert HUB["spec"]["selector"]["matchLabels"] == labels
    assert HUB["spec"]["serviceName"] == one("Service", "roost-hubs")["metadata"]["name"]
    names = {port["name"] for port in CONTAINER["ports"]}
    for name in ("roost", "roost-hubs"):
        service = one("Service", name)["spec"]
        assert service["selector"] == labels and {port["targetPort"] for port in service["ports"]} <= names
    assert one("PodDisruptionBudget", "roost")["spec"]["selector"]["matchLabels"] == labels
    policy = one("NetworkPolicy", "roost")["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert [[port["port"] for port in rule["ports"]] for rule in policy["ingress"]] == [["clients"], ["operator"]]
    redis = one("NetworkPolicy", "roost-redis")["spec"]["ingress"]
    assert [source["podSelector"]["matchLabels"] for source in redis[0]["from"]] == [labels]

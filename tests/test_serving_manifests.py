"""The manifests and the Dockerfile: what Kubernetes, KServe and KubeRay need is there, and agrees
with the code.
"""

import importlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml
from helpers import ROOT
from packaging.requirements import Requirement

MANIFESTS = ROOT / "serving" / "manifests"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IMAGE = re.compile(r"[a-z0-9./:-]+/[a-z0-9-]+:(?!latest)[a-z0-9.-]+")


def manifest(name):
    [found] = yaml.safe_load_all((MANIFESTS / name).read_text(encoding="utf-8"))
    return found


def check_container(container):
    assert re.fullmatch("[a-z0-9-]+", container["name"]) and IMAGE.fullmatch(container["image"])
    assert (
        set(container["resources"]["limits"])
        == {"cpu", "memory"}
        == set(container["resources"]["requests"])
    )
    assert (
        container["securityContext"]["runAsNonRoot"]
        and not container["securityContext"]["allowPrivilegeEscalation"]
    )
    assert all(isinstance(each["value"], str) for each in container.get("env", []))
    uid = container["securityContext"]["runAsUser"]
    assert f"--uid {uid} " in DOCKERFILE and f"USER {uid}\n" in DOCKERFILE
    assert (
        container["securityContext"]["readOnlyRootFilesystem"] and container["lifecycle"]["preStop"]
    )
    assert container["livenessProbe"] != container["readinessProbe"]


def test_the_inference_service_has_what_kserve_needs():
    found = manifest("kserve.yaml")
    assert (found["apiVersion"], found["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", found["metadata"]["name"])
    assert all(isinstance(value, str) for value in found["metadata"]["annotations"].values())
    predictor = found["spec"]["predictor"]
    assert 0 < predictor["minReplicas"] <= predictor["maxReplicas"]
    [container] = predictor["containers"]
    check_container(container)
    assert container["name"] == "kserve-container"  # what KServe looks for
    [port] = container["ports"]
    assert port["protocol"] == "TCP" and f"EXPOSE {port['containerPort']}\n" in DOCKERFILE
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["containerPort"]}
    assert {each["name"] for each in container["volumeMounts"]} == {
        each["name"] for each in predictor["volumes"]
    }
    assert {each["name"] for each in container["env"]} == {"STORAGE_URI"}
    run, hosts = container["args"]
    assert run == "--run=dam=/mnt/models"  # where the storage initializer puts it
    assert hosts == "--allowed_hosts=*"  # as the names by which a cluster routes to it are many


def test_the_ray_service_has_what_kuberay_needs():
    found = manifest("rayservice.yaml")
    assert (found["apiVersion"], found["kind"]) == ("ray.io/v1", "RayService")
    cluster = found["spec"]["rayClusterConfig"]
    [workers] = cluster["workerGroupSpecs"]
    assert (
        0 < workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
        and workers["groupName"]
    )
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    for group in (cluster["headGroupSpec"], workers):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        [container] = group["template"]["spec"]["containers"]
        check_container(container)
        for probe in ("livenessProbe", "readinessProbe"):  # by what the image has
            assert (
                container[probe]["exec"]["command"][0] == "python"
                and container[probe]["timeoutSeconds"] > 4
            )
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in group["template"]["spec"]["volumes"]}


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_the_serve_config_is_what_the_code_takes():
    config = yaml.safe_load(manifest("rayservice.yaml")["spec"]["serveConfigV2"])
    [application] = config["applications"]
    arguments = application["args"]
    assert set(arguments) == {"models", "min_replicas", "max_replicas"}
    assert 0 < arguments["min_replicas"] <= arguments["max_replicas"]
    for model in arguments["models"].values():
        assert set(model) <= {"path", "index"}
        assert model["path"].startswith("/runs/")
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    from ray.serve.schema import ServeDeploySchema

    ServeDeploySchema.model_validate(config)
    module, _, name = application["import_path"].partition(":")
    found = importlib.import_module(module)
    assert callable(getattr(found, name)) and found.APPLICATION == application["name"]


def test_the_image_has_locked_versions_of_what_requirements_allow():
    lock = dict(
        line.split("==")
        for line in (ROOT / "serving/lock.txt").read_text().splitlines()
        if "==" in line
    )
    names = [
        line
        for line in (ROOT / "serving/requirements.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    allowed = map(Requirement, (ROOT / "requirements.txt").read_text().split("\n")[:-1])
    ranges = {requirement.name: requirement.specifier for requirement in allowed}
    assert all(lock[name] in ranges[name] for name in names)
    [ray] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]["ray"]
    assert (
        lock["ray"] in Requirement(ray).specifier
        and "rayVersion" not in manifest("rayservice.yaml")["spec"]
    )
    assert not {"gensim", "matplotlib", "pytest", "tensorboard", "sacrebleu"} & set(lock)


@pytest.mark.slow
def test_a_server_needs_no_other_files_and_packages_than_the_image_has(tmp_path, trained_selection):
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert rules[0] == "*"
    for name in (rule[1:] for rule in rules if rule.startswith("!") and rule != "!pretrained"):
        (shutil.copy if name.endswith(".py") else shutil.copytree)(ROOT / name, tmp_path / name)
    program = f"""
import sys
for name in ("gensim", "matplotlib", "pytest", "tensorboard", "sacrebleu", "yaml", "prompt_toolkit"):
    sys.modules[name] = None
import serve
from colloquy.serving import app, models, server
model = models.open_model("m", {str(trained_selection.path)!r})
model.warm_up()
app.create_app({{"m": model}})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

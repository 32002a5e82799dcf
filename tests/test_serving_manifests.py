"""The manifests and the Dockerfile: what Kubernetes and KubeRay need is there, and agrees
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


def read_manifests(name):
    return list(yaml.safe_load_all((MANIFESTS / name).read_text(encoding="utf-8")))


def check_container(container):
    """Checks what every container of ours needs: a fixed image, limits, and few rights."""
    assert IMAGE.fullmatch(container["image"])
    for sizes in (container["resources"]["limits"], container["resources"]["requests"]):
        assert set(sizes) == {"cpu", "memory"}
    security = container["securityContext"]
    assert security["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"--uid {security['runAsUser']} " in DOCKERFILE
    assert f"USER {security['runAsUser']}\n" in DOCKERFILE
    assert container["lifecycle"]["preStop"]
    assert container["livenessProbe"] != container["readinessProbe"]


def test_the_deployment_and_its_service_agree():
    deployment, service = read_manifests("deployment.yaml")
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    [container] = template["spec"]["containers"]
    check_container(container)
    [port] = container["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in DOCKERFILE
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": port["containerPort"]}
    assert service["spec"]["ports"][0]["targetPort"] == port["containerPort"]
    _, hosts = container["args"]
    assert hosts.startswith(f"--allowed_hosts={service['metadata']['name']},")


def test_the_ray_service_has_what_kuberay_needs():
    service, policy = read_manifests("rayservice.yaml")
    # Ray's control ports are open to its own pods alone.
    from_anywhere, from_cluster, _ = policy["spec"]["ingress"]
    assert [port["port"] for port in from_anywhere["ports"]] == [8000]
    assert from_cluster["from"] == [{"podSelector": policy["spec"]["podSelector"]}]
    assert (service["apiVersion"], service["kind"]) == ("ray.io/v1", "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    head = cluster["headGroupSpec"]
    [workers] = cluster["workerGroupSpecs"]
    assert workers["groupName"]
    assert 0 < workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    # The dashboard executes code for whoever reaches it.
    assert head["rayStartParams"]["dashboard-host"] == "127.0.0.1"
    for group in (head, workers):
        pod = group["template"]["spec"]
        [container] = pod["containers"]
        check_container(container)
        for probe in ("livenessProbe", "readinessProbe"):
            # The image has Python, and no wget.
            assert container[probe]["exec"]["command"][0] == "python"
            assert container[probe]["timeoutSeconds"] > 4


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_the_serve_config_is_what_the_code_takes():
    config = yaml.safe_load(read_manifests("rayservice.yaml")[0]["spec"]["serveConfigV2"])
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
    cluster = importlib.import_module(module)
    assert callable(getattr(cluster, name))
    assert cluster.APPLICATION == application["name"]


def read_lock(name):
    """Returns `{package: version}` of a lock; each package must have a hash."""
    versions = {}
    for requirement in (ROOT / "serving" / name).read_text().replace("\\\n", "").splitlines():
        if requirement.startswith("#"):
            continue
        package, *hashes = requirement.split()
        name, version = package.split("==")
        assert hashes
        assert all(value.startswith("--hash=sha256:") for value in hashes)
        versions[name] = version
    return versions


def test_the_image_has_locked_versions_of_what_requirements_allow():
    locked = read_lock("lock.txt")
    locked_with_ray = read_lock("lock-ray.txt")
    allowed = {}
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        requirement = Requirement(line)
        allowed[requirement.name] = requirement.specifier
    for name in (ROOT / "serving/requirements.txt").read_text().splitlines():
        if not name.startswith("#"):
            assert locked[name] in allowed[name]

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [ray] = project["optional-dependencies"]["ray"]
    assert locked_with_ray["ray"] in Requirement(ray).specifier
    assert locked.items() <= locked_with_ray.items()
    assert not {"gensim", "matplotlib", "pytest", "sacrebleu"} & set(locked)


@pytest.mark.slow
def test_a_server_needs_no_other_files_and_packages_than_the_image_has(tmp_path, trained_selection):
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert rules[0] == "*"
    for name in (rule[1:] for rule in rules if rule.startswith("!") and rule != "!pretrained"):
        (shutil.copy if name.endswith(".py") else shutil.copytree)(ROOT / name, tmp_path / name)
    program = f"""
import sys
missing = "gensim", "matplotlib", "pytest", "sacrebleu", "yaml"
for name in missing:
    sys.modules[name] = None
from colloquy.commands import serve
from colloquy.serving import app, models, server, warm_up
model = models.open_model("m", {str(trained_selection.path)!r})
warm_up.warm_up(model.predictor)
app.create_app({{"m": model}})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

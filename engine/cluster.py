"""A training on several hosts of a Ray cluster: Ray Train starts them, joins their JAX, and starts them again."""

import pathlib
import tempfile

from base.cluster import connected
from base.files import UserError
from engine.run import LAST, saved_position
from engine.task import sample_of

ENVIRONMENT = {"KERAS_BACKEND": "jax", "RAY_TRAIN_V2_ENABLED": "1"}
LOSSES = 3
"""As often in a row, with nothing new saved between, a lost host ends the training: starting again does not mend it."""


def train_on_cluster(hosts, *, task, workdir, data=None, init_from=None, resume=False, **settings):
    """Trains as `engine.train.start` or `resume` does, on all devices of several hosts.

    Every host finds files where this one does. If a host is lost, the others are ended, and all continue from the last
    save.

    Args:
        hosts: Number of hosts; one process runs on each.
        task, workdir, data, init_from, **settings: Arguments of `engine.train.start` without `devices`, or with
            `resume` of `engine.train.resume`.

    Raises:
        UserError: if an input is wrong, the cluster has fewer hosts, or one is lost before anything was saved, or
            `LOSSES` times at the same step.
    """
    if not resume:
        data = data or sample_of(task)
        settings["init_from"] = init_from and _absolute(init_from)
    given = {"task": task, "workdir": _absolute(workdir), "data": data and _absolute(data), **settings}
    run = pathlib.Path(given["workdir"])
    run.parent.mkdir(parents=True, exist_ok=True)
    step, losses = None, 0
    with connected("--ray_hosts", ("ray", "fsspec"), log=True, **ENVIRONMENT) as ray:
        alive = sum(node["Alive"] for node in ray.nodes())
        if alive < hosts:
            raise UserError(f"--ray_hosts={hosts}: expected {hosts} hosts in the cluster. Received: {alive}")
        gpus = int(ray.cluster_resources().get("GPU", 0)) // hosts
        while lost := _start(hosts, gpus, run.parent, {"resume": resume, "given": given}):
            if not (run / LAST).exists():
                raise UserError(f"a host was lost before anything was saved: {lost}")
            before, step = step, saved_position(run)["step"]
            losses = losses + 1 if step == before else 1
            if losses == LOSSES:
                raise UserError(f"{losses} times a host was lost after step {step}; --resume goes on: {lost}")
            resume = True
            given = {name: given[name] for name in ("task", "workdir", "data", "save_minutes") if name in given}


def _absolute(path):
    return str(pathlib.Path(path).resolve())


def _start(hosts, gpus, directory, job):
    """Trains to the end; returns what happened where a host was lost."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.v2.api.exceptions import WorkerGroupError
    from ray.train.v2.jax import JaxConfig, JaxTrainer

    with tempfile.TemporaryDirectory(dir=directory, prefix=".ray.") as storage:
        trainer = JaxTrainer(
            _train,
            train_loop_config=job,
            jax_config=JaxConfig(use_gpu=True),  # else it joins nothing; where JAX_PLATFORMS is cpu, it joins CPUs
            scaling_config=ScalingConfig(
                num_workers=hosts,
                use_gpu=gpus > 0,
                resources_per_worker={"CPU": 1, **({"GPU": gpus} if gpus else {})},
                placement_strategy="STRICT_SPREAD",
            ),
            run_config=RunConfig(
                storage_path=storage,
                worker_runtime_env={"env_vars": {"JAX_PLATFORMS": "cuda" if gpus else "cpu"}},
            ),
        )
        try:
            trainer.fit()
        except WorkerGroupError as error:
            failures = error.worker_failures.values()
            for failure in failures:
                if isinstance(failure, UserError):
                    raise failure from None
            return "; ".join(str(failure).strip().splitlines()[-1] for failure in failures)
    return None


def _train(job):
    from engine.train import resume, start

    (resume if job["resume"] else start)(**job["given"], devices="all")

"""A training on several hosts of a Ray cluster, by Ray Train.

Ray is the extra `ray`: `pip install -e '.[ray]'`.
"""

import contextlib
import importlib.util
import logging
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from colloquy.base.files import PathLike, UserError
from colloquy.engine.run import Run
from colloquy.engine.sample import prepare_sample

LOSSES = 3  # restarts without progress after which a training ends


@contextlib.contextmanager
def connected() -> Iterator[Any]:
    """Connects this process to the cluster of `RAY_ADDRESS`, or to one that it starts here.

    Yields the module `ray`. The cluster's processes find this repository at the same path, and
    their output is shown.

    Raises:
        UserError: A module is missing, or the cluster does not answer.
    """
    for name in ("ray", "fsspec"):
        if importlib.util.find_spec(name) is None:
            raise UserError("--ray_hosts needs Ray: python -m pip install -e '.[ray]'")
    import ray

    environment = {
        "PYTHONPATH": str(pathlib.Path(__file__).resolve().parent.parent),
        "KERAS_BACKEND": "jax",
        "RAY_TRAIN_V2_ENABLED": "1",
    }
    try:
        ray.init(
            log_to_driver=True,
            include_dashboard=False,
            logging_level=logging.WARNING,
            runtime_env={"env_vars": environment},
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(
            f"--ray_hosts: the Ray cluster does not answer: {str(error)[:200]}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def train_on_cluster(
    hosts: int,
    *,
    task: Any,
    workdir: PathLike,
    data: PathLike | None = None,
    init_from: Any = None,
    resume: bool = False,
    **settings: Any,
) -> None:
    """Trains as `engine.train.start` or `resume` does, on all devices of several hosts.

    Every host has one process and finds files at the same paths. If a host is lost, the others are
    ended, and all continue from the last save.

    Raises:
        UserError: A host was lost before anything was saved, or `LOSSES` times at the same step.
    """
    run = Run(pathlib.Path(_absolute(workdir)), {})
    arguments = {**settings, "task": task, "workdir": str(run.path)}
    if not resume:
        data = data or prepare_sample(task)
        arguments["init_from"] = _absolute(Run.open(init_from).path) if init_from else None
    arguments["data"] = _absolute(data)
    run.path.parent.mkdir(parents=True, exist_ok=True)

    last_step = None
    losses = 0
    with connected() as ray:
        alive = sum(node["Alive"] for node in ray.nodes())
        if alive < hosts:
            raise UserError(
                f"--ray_hosts={hosts}: expected {hosts} hosts in the cluster. Received: {alive}"
            )
        gpus = int(ray.cluster_resources().get("GPU", 0)) // hosts
        while True:
            job = {"resume": resume, "arguments": arguments}
            reason = _start(hosts, gpus, run.path.parent, job)
            if reason is None:
                return
            state = run.saved_state()
            if state is None:
                raise UserError(f"a host was lost before anything was saved: {reason}")
            losses = losses + 1 if state.step == last_step else 1
            last_step = state.step
            if losses == LOSSES:
                raise UserError(
                    f"{losses} times a host was lost after step {state.step}; --resume continues: "
                    f"{reason}"
                )
            resume = True
            arguments = _resume_arguments(arguments)


def _resume_arguments(arguments):
    """Returns those of the arguments that `engine.train.resume` takes."""
    names = ("task", "workdir", "data", "epochs", "save_minutes")
    return {name: arguments[name] for name in names if name in arguments}


def _absolute(path):
    return str(pathlib.Path(path).resolve()) if path else None


def _start(hosts, gpus, directory, job):
    """Trains to the end; returns the reason if a host was lost."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.v2.api.exceptions import WorkerGroupError
    from ray.train.v2.jax import JaxConfig, JaxTrainer

    platform = "cuda" if gpus else "cpu"
    resources = {"CPU": 1}
    if gpus:
        resources["GPU"] = gpus
    with tempfile.TemporaryDirectory(dir=directory, prefix=".ray.") as storage:
        trainer = JaxTrainer(
            _train,
            train_loop_config=job,
            # Without `use_gpu`, Ray does not join the hosts. With JAX_PLATFORMS=cpu, they compute
            # on CPUs all the same.
            jax_config=JaxConfig(use_gpu=True),
            scaling_config=ScalingConfig(
                num_workers=hosts,
                use_gpu=gpus > 0,
                resources_per_worker=resources,
                placement_strategy="STRICT_SPREAD",
            ),
            run_config=RunConfig(
                storage_path=storage,
                worker_runtime_env={"env_vars": {"JAX_PLATFORMS": platform}},
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
    from colloquy.engine.train import resume, start

    train = resume if job["resume"] else start
    train(**job["arguments"], devices="all")

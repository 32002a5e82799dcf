"""Serves trained models: REST for programs, pages for people.

python serve.py --run=dam=runs/dam --run=reader=runs/bidaf --port=8501
python serve.py                              # what there is: pretrained/*, then runs/*
"""

import pathlib

from absl import flags

from base import cli
from base.files import UserError

FLAGS = flags.FLAGS
flags.DEFINE_multi_string("run", [], "NAME=DIR: a run directory or an exported model; may be repeated.")
flags.DEFINE_string("host", "127.0.0.1", "Address to listen at; 0.0.0.0: all of this machine's.")
flags.DEFINE_integer("port", 8501, "Port to listen at.", lower_bound=0, upper_bound=65535)
flags.DEFINE_float("batch_milliseconds", 4.0, "A batch waits this long for requests to share it.", lower_bound=0.0)
flags.DEFINE_integer("max_batch", 32, "Instances per call of a model.", lower_bound=1)
flags.DEFINE_integer("max_queue", 256, "Instances that may wait per model; more get status 429.", lower_bound=1)
flags.DEFINE_float("timeout_seconds", 30.0, "A request that is not answered by then gets status 504.", lower_bound=0.1)
flags.DEFINE_integer("max_body_bytes", 1_000_000, "Bytes of a request's body; more get status 413.", lower_bound=1)


def found_models():
    """`{name: path}` of what lies about: trained runs of `pretrained/` and `runs/`."""
    configs = [*pathlib.Path("pretrained").glob("*/config.json"), *pathlib.Path("runs").glob("*/config.json")]
    return {path.parent.name: path.parent for path in reversed(configs) if (path.parent / "best.weights.h5").is_file()}


def given_models(assignments):
    """`{name: path}` of `NAME=DIR` flags.

    Raises:
        UserError: where one is malformed or a name stands twice.
    """
    models = {}
    for assignment in assignments:
        name, equals, path = assignment.partition("=")
        if not (name and equals and path):
            raise UserError(f"--run expects NAME=DIR. Received: {assignment}")
        if name in models:
            raise UserError(f"--run: the name {name} stands twice")
        models[name] = path
    return models


def main():
    paths = given_models(FLAGS.run) or found_models()
    if not paths:
        raise UserError("there is no trained model in pretrained/ or runs/: train one, as `train.py --model=dam` does")
    import uvicorn

    from serving.app import create_app
    from serving.limits import Limits
    from serving.models import load
    from tasks import TASKS  # TensorFlow takes seconds to load

    models = {name: load(name, path, TASKS) for name, path in paths.items()}
    for name, model in models.items():
        model.warm_up()
        print(f"{name}: {paths[name]} is warm")
    limits = Limits(body_bytes=FLAGS.max_body_bytes, timeout_seconds=FLAGS.timeout_seconds)
    app = create_app(models, limits, FLAGS.batch_milliseconds, FLAGS.max_batch, FLAGS.max_queue)
    print(f"http://{FLAGS.host}:{FLAGS.port}/ is open; Ctrl-C ends it")
    uvicorn.run(app, host=FLAGS.host, port=FLAGS.port, log_level="warning", timeout_graceful_shutdown=10)


if __name__ == "__main__":
    cli.run(main)

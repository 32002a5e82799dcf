"""A function on all machines of a Ray cluster, by Ray Data."""

import contextlib
import logging
import pickle

from base.cluster import connected

ENVIRONMENT = {"PYTHONHASHSEED": "1"}
"""Texts have one hash in all processes."""


class Lost(Exception):
    """What the cluster was asked for cannot be had: the function failed, or the cluster did."""


@contextlib.contextmanager
def on_cluster(flag):
    """Connects to a cluster, see `base.cluster.connected`, which maps functions.

    Yields:
        `results(function, items)`: a generator of what `function(item)` yields for each item, item after item. All of
        it can be pickled, and the function changes nothing. It raises `Lost`.
    """
    with connected(flag, ("ray", "pyarrow"), **ENVIRONMENT) as ray:
        yield lambda function, items: _results(ray, function, items)


def _results(ray, function, items):
    from ray import data
    from ray.exceptions import RayError

    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of every plan
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True

    def compute(row):
        for result in function(pickle.loads(row["item"])):
            yield {"result": pickle.dumps(result)}

    rows = [{"item": pickle.dumps(item)} for item in items]
    try:
        for row in data.from_items(rows, override_num_blocks=len(rows)).flat_map(compute).iter_rows():
            yield pickle.loads(row["result"])
    except RayError as error:
        reason = getattr(error, "cause", None) or str(error).strip().splitlines()[-1]
        raise Lost(str(reason)[:300]) from error

"""data/cluster.py and `prepare.py --ray`: two nodes of this machine prepare what one process does."""

import os
import re
import sys
import time

import pytest
from helpers import ray_nodes

from base import cluster as base_cluster
from base.files import UserError
from data.cluster import Lost, on_cluster
from data.samples.selection import write_smn
from tasks.selection.prepare import Settings, prepare

SMALL = Settings(name="sample", dimension=7, word2vec_epochs=1)


@pytest.fixture(scope="module")
def two_nodes():
    """The address of a cluster."""
    pytest.importorskip("ray.data", reason="requirements-ray.txt is not installed", exc_type=ImportError)
    with ray_nodes() as address:
        yield address


def where(item):
    """Each number up to one, with the process that counts and its hash of a text; two processes wait for each other."""
    directory, last = item
    if last == 13:
        raise ValueError("an unlucky number")
    (directory / str(os.getpid())).touch()
    for _ in range(600):
        if len(list(directory.iterdir())) == 2:
            break
        time.sleep(0.1)
    for number in range(last):
        yield number, os.getpid(), hash("a text")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_cluster_gives_results_in_the_order_of_the_items(two_nodes, tmp_path):
    from ray.cloudpickle import register_pickle_by_value

    register_pickle_by_value(sys.modules[__name__])  # its functions travel to processes without tests/
    with on_cluster("--ray") as results:
        found = list(results(where, [(tmp_path, last) for last in (5, 0, 2, 7, 3)]))
        with pytest.raises(Lost, match="an unlucky number"):
            list(results(where, [(tmp_path, 2), (tmp_path, 13)]))
    assert [number for number, _, _ in found] == [*range(5), *range(2), *range(7), *range(3)]
    processes = {process for _, process, _ in found}
    assert len(processes) == 2 and os.getpid() not in processes
    assert len({text for _, _, text in found}) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_nodes_prepare_the_same_bytes_as_one_process(two_nodes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tasks.selection.ingest.SPAN", 5000)
    raw = tmp_path / "raw"
    write_smn(raw, count=60, seed=3, held_out=11)
    assert (raw / "train.txt").stat().st_size > 50_000
    for out, ray in (("one", False), ("two", True)):
        prepare("smn", raw, tmp_path / out, SMALL, ray=ray)
    files = sorted(file.relative_to(tmp_path / "one") for file in (tmp_path / "one").rglob("*") if file.is_file())
    assert len(files) == 4
    for file in files:
        assert (tmp_path / "two" / file).read_bytes() == (tmp_path / "one" / file).read_bytes(), file
    with open(raw / "train.txt", "a") as file:
        file.write("1 no tabs\n")
    errors = []
    for ray in (False, True):
        with pytest.raises(UserError) as error:
            prepare("smn", raw, tmp_path / "new", SMALL, ray=ray)
        errors.append(str(error.value))
    assert errors[0] == errors[1] and re.search(r"train\.txt, line \d+: expected", errors[0])
    assert not (tmp_path / "new").exists()


def test_without_ray_it_says_what_to_install(monkeypatch, tmp_path):
    write_smn(tmp_path / "raw", count=60, seed=3, held_out=11)
    monkeypatch.setattr(base_cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"^--ray needs Ray: python -m pip install -r requirements-ray.txt$"):
        prepare("smn", tmp_path / "raw", tmp_path / "out", SMALL, ray=True)
    assert not (tmp_path / "out").exists()

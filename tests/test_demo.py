"""`make demo`, as far as can be told without running it; CI runs it."""

import pathlib
import re

from tasks import TASKS
from tasks.selection.prepare import Settings

ROOT = pathlib.Path(__file__).parents[1]


def test_the_demo_prepares_the_sample_as_train_does_without_data(tmp_path, monkeypatch):
    made = {}
    monkeypatch.setattr("tasks.selection.task.write_smn", lambda directory: None)
    monkeypatch.setattr(
        "tasks.selection.task.prepare", lambda corpus, source, out, settings: made.update(settings.to_json())
    )
    TASKS["selection"].make_sample(tmp_path)
    [command] = re.findall(r"prepare\.py ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text())
    flags = dict(re.findall(r"--(\w+)=(\S+)", command))
    assert flags.pop("corpus") == "smn"
    assert flags.pop("source") == "$(DEMO)/raw" and flags.pop("out") == "$(DEMO)/prepared"
    defaults = Settings().to_json()
    assert flags == {name: str(value) for name, value in made.items() if value != defaults[name]}

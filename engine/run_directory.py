"""The JSON files in the directory of a run: its config, history, metrics and examples."""

import dataclasses
import json
import os
import pathlib

from colloquy.base.files import atomic_file, writing
from colloquy.data.json_files import read_json, validated, write_json
from colloquy.data.text_files import read_lines
from colloquy.engine.records import HistoryRow
from colloquy.engine.run_files import CONFIG, EXAMPLES, HISTORY, MAX_EXAMPLES, METRICS


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """The base of `engine.run.Run`: reads and writes its JSON files."""

    path: pathlib.Path
    record: dict
    """The contents of `config.json`."""

    @property
    def dataset(self) -> dict:
        """Metadata of the dataset that the run was trained on."""
        return self.record["dataset"]

    def update(self, changes: dict) -> None:
        """Changes entries of `config.json`."""
        self.record.update(changes)
        write_json(self.path / CONFIG, self.record)

    # === History ===

    def log(self, row: dict) -> None:
        """Appends one line to `history.jsonl`."""
        with writing(self.path / HISTORY), open(self.path / HISTORY, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def history(self) -> list[dict]:
        """The rows of `history.jsonl`, up to the first that a killed process left unfinished."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        rows = []
        for _, line in read_lines(file, None):
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                break
        validated(file, list[HistoryRow], rows)
        return rows

    def replace_history(self, rows: list[dict]) -> None:
        """Writes all rows of `history.jsonl`."""
        with atomic_file(self.path / HISTORY) as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")

    def trainings(self) -> list[dict]:
        """The trainings that led to the weights: those of `init_from`, then the run's own.

        Each is `{"corpus", "epochs", "seconds", "command"}`; a value is `None` if it is unknown.
        """
        rows = self.history()
        last_row = rows[-1] if rows else {}
        own_training = {
            "corpus": self.dataset.get("name"),
            "epochs": last_row.get("epoch"),
            "seconds": last_row.get("seconds"),
            "command": self.record.get("command"),
        }
        return [*self.record.get("before", []), own_training]

    # === Metrics and examples ===

    def metrics(self) -> dict[str, dict]:
        """The contents of `metrics.json`, `{split: result}`; empty in a run without it."""
        return self._read(METRICS, {})

    def save_metrics(self, split: str, result: dict) -> None:
        """Sets the entry of `split` in `metrics.json`.

        A published run keeps its entries, which its card quotes.
        """
        metrics = self.metrics()
        is_published = self.dataset["path"] is None  # publishing removes the path
        if split in metrics and is_published:
            return
        write_json(self.path / METRICS, {**metrics, split: result})

    def examples(self) -> list[dict]:
        """The contents of `examples.json`; empty in a run without it."""
        return self._read(EXAMPLES, [])

    def save_examples(self, examples: list[dict]) -> None:
        """Writes `examples.json`, without examples that would make it too large to be opened."""
        kept: list[dict] = []
        for example in examples:
            # The file is indented, which may double its size.
            max_size = 2 * len(json.dumps([*kept, example]))
            if max_size < MAX_EXAMPLES:
                kept.append(example)
        write_json(self.path / EXAMPLES, kept)

    def _read(self, name, default):
        """The contents of a JSON file, which `open_untrusted` has checked; `default` without it."""
        file = self.path / name
        return read_json(file) if file.exists() else default

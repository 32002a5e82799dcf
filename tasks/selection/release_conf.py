"""The keys of `conf` in DAM's original release, and the setting or flag that replaces each.

docs/release.md shows the same table to readers who come from the release.
"""

from typing import NamedTuple

from colloquy.base.files import UserError
from colloquy.data.json_files import read_json


class ReleaseKey(NamedTuple):
    """One key of the release's `conf`."""

    setting: str | None
    """The setting of `train.py --set` that takes the same value; `None` if no setting does."""
    note: str = ""
    """A note, which ends the line that train.py prints for the key."""


KEYS = {
    "stack_num": ReleaseKey("levels"),
    "is_positional": ReleaseKey("positional"),
    "max_turn_num": ReleaseKey("max_turns"),
    "max_turn_len": ReleaseKey("max_words"),
    "batch_size": ReleaseKey("batch_size"),
    "learning_rate": ReleaseKey("learning_rate"),
    "num_scan_data": ReleaseKey("epochs"),
    "rand_seed": ReleaseKey("seed", "the draws differ from the release's"),
    "vocab_size": ReleaseKey(None, "the dataset decides vocabulary_size"),
    "emb_size": ReleaseKey(None, "the word vectors decide embedding_dim"),
    "_EOS_": ReleaseKey(None, "prepare.py --eos_id=ID, or --name=ubuntu-v1 or --name=douban"),
    "data_path": ReleaseKey(None, "prepare.py --corpus=dam-release --source=DIR, then --data"),
    "word_emb_init": ReleaseKey(None, "word_embedding.pkl in the --source of prepare.py"),
    "save_path": ReleaseKey(None, "--workdir=RUN"),
    "init_model": ReleaseKey(None, "tools.import_release makes a run of it, for --init_from=RUN"),
    "attention_type": ReleaseKey(None, "the release does not read it"),
    "is_mask": ReleaseKey(None, "the release does not read it: its masks are masking=release"),
    "is_layer_norm": ReleaseKey(None, "the release does not read it: it always normalizes"),
    "drop_dense": ReleaseKey(None, "the release does not read it: it has no dropout"),
    "drop_attention": ReleaseKey(None, "the release does not read it: it has no dropout"),
    "final_n_class": ReleaseKey(None, "the release does not read it"),
    "max_to_keep": ReleaseKey(None, "a run keeps its best weights and its last state"),
}
"""`{key: ReleaseKey}` of every key of the release's `conf`."""


def read_release_conf(path: str) -> tuple[dict, list[str]]:
    """Reads the release's `conf` dict, saved as JSON.

    Returns:
        The settings with the same meaning, as `train.py --set` takes them.
        Lines to print: one about `compatibility`, then one for each key of the file.

    Raises:
        UserError: The file has no JSON object, a key that the release lacks, or a wrong value.
    """
    conf = read_json(path)
    if not isinstance(conf, dict):
        raise UserError(f"{path}: expected a JSON object. Received: {type(conf).__name__}")
    settings = {"compatibility": "release"}
    lines = ["compatibility=release: the network and the loss of the release"]
    for name, value in conf.items():
        if name not in KEYS:
            raise UserError(f"{path}: {name} is not a key of the release's conf: {', '.join(KEYS)}")
        key = KEYS[name]
        if key.setting is None:
            lines.append(f"{name}={value}: {key.note}")
            continue
        note = f"; {key.note}" if key.note else ""
        # For example, `rand_seed` is None in the release.
        if value is None:
            lines.append(f"{name}={value}: our default{note}")
            continue
        # `make_config` would parse the text "4" as a number. Only `is_positional` is no number.
        if isinstance(value, bool | str) and key.setting != "positional":
            raise UserError(f"{path}: {name}: expected a number. Received: {value!r:.60}")
        settings[key.setting] = value
        lines.append(f"{name}={value}: {key.setting}={value}{note}")
    return settings, lines

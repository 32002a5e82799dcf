"""The keys of `conf` in DAM's original release, and the setting or flag that replaces each.

docs/release.md shows the same table to readers who come from the release.
"""

from colloquy.base.files import UserError
from colloquy.data.json_files import read_json

SETTINGS = {
    "stack_num": "levels",
    "is_positional": "positional",
    "max_turn_num": "max_turns",
    "max_turn_len": "max_words",
    "batch_size": "batch_size",
    "learning_rate": "learning_rate",
    "num_scan_data": "epochs",
    "rand_seed": "seed",
}
"""Keys -> the settings of `train.py --set` that take the same values."""
NOTES = {
    "vocab_size": "the dataset decides vocabulary_size",
    "emb_size": "the word vectors decide embedding_dim",
    "_EOS_": "prepare.py --eos_id=ID, or --name=ubuntu-v1 or --name=douban",
    "data_path": "prepare.py --corpus=dam-release --source=DIR, then --data",
    "word_emb_init": "word_embedding.pkl in the --source of prepare.py",
    "save_path": "--workdir=RUN",
    "init_model": "tools.import_release makes a run of it, for --init_from=RUN",
    "attention_type": "the release does not read it",
    "is_mask": "the release does not read it: its masks are masking=release",
    "is_layer_norm": "the release does not read it: it always normalizes",
    "drop_dense": "the release does not read it: it has no dropout",
    "drop_attention": "the release does not read it: it has no dropout",
    "final_n_class": "the release does not read it",
    "max_to_keep": "a run keeps its best weights and its last state",
}
"""The other keys -> what train.py prints for them."""


def read_release_conf(path):
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
        if name in NOTES:
            lines.append(f"{name}={value}: {NOTES[name]}")
            continue
        if name not in SETTINGS:
            raise UserError(
                f"{path}: {name} is not a key of the release's conf: "
                f"{', '.join([*SETTINGS, *NOTES])}"
            )
        setting = SETTINGS[name]
        # For example, `rand_seed` is None in the release.
        if value is None:
            lines.append(f"{name}={value}: our default")
            continue
        # `make_config` would parse the text "4" as a number. Only `is_positional` is no number.
        if isinstance(value, bool | str) and setting != "positional":
            raise UserError(f"{path}: {name}: expected a number. Received: {value!r:.60}")
        settings[setting] = value
        note = "; the draws differ from the release's" if setting == "seed" else ""
        lines.append(f"{name}={value}: {setting}={value}{note}")
    return settings, lines

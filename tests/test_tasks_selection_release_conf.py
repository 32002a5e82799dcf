"""The conf of DAM's release as settings of ours."""

import json
import re

from helpers import ROOT, refusal, script_refusal

from colloquy.models import MODELS
from colloquy.tasks import TASKS
from colloquy.tasks.selection.release_conf import NOTES, SETTINGS, read_release_conf

# As in the release's main.py, for Ubuntu V1.
CONF = {
    "data_path": "./data/data.pkl",
    "save_path": "./output/ubuntu/temp/",
    "word_emb_init": "./data/word_embedding.pkl",
    "init_model": None,
    "rand_seed": None,
    "drop_dense": None,
    "drop_attention": None,
    "is_mask": True,
    "is_layer_norm": True,
    "is_positional": False,
    "stack_num": 4,
    "attention_type": "dot",
    "learning_rate": 1e-3,
    "vocab_size": 434512,
    "emb_size": 200,
    "batch_size": 256,
    "max_turn_num": 9,
    "max_turn_len": 50,
    "max_to_keep": 1,
    "num_scan_data": 2,
    "_EOS_": 28270,
    "final_n_class": 1,
}


def write(tmp_path, conf):
    file = tmp_path / "conf.json"
    file.write_text(json.dumps(conf), encoding="utf-8")
    return file


def test_each_key_becomes_a_setting_or_a_line(tmp_path):
    settings, lines = read_release_conf(write(tmp_path, CONF))
    assert settings == {
        "compatibility": "release",
        "positional": False,
        "levels": 4,
        "learning_rate": 1e-3,
        "batch_size": 256,
        "max_turns": 9,
        "max_words": 50,
        "epochs": 2,
    }
    assert len(lines) == len(CONF) + 1
    assert "stack_num=4: levels=4" in lines
    model, training = TASKS["selection"].split_settings(MODELS["dam"], settings)
    assert model["levels"] == 4 and model["masking"] == "release" and training.loss_clip == 10.0


def test_the_page_of_the_release_names_every_key():
    page = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    for name in (*SETTINGS, *NOTES):
        [row] = re.findall(rf"(?m)^\| [^|]*`{name}`.*$", page)
        setting = SETTINGS.get(name)
        assert setting is None or f"`{setting}`" in row or f"`--{setting}`" in row


def test_another_conf_is_refused(tmp_path):
    for conf, word in (([], "JSON object"), ({"levels": 3}, "levels")):
        assert word in refusal(read_release_conf, write(tmp_path, conf))


def test_train_reads_a_conf(tmp_path):
    conf = write(tmp_path, CONF)
    flags = ["--workdir=build/never", "--data=nowhere", f"--release_conf={conf}"]
    assert "nowhere" in script_refusal("train.py", *flags)
    assert "--model=dam" in script_refusal("train.py", *flags, "--model=memma")

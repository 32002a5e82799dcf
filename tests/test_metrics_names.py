"""metrics/names.py: what tables call a model."""

import pytest

from metrics.names import model_name, of_today, record_name
from tasks import RECIPES

FEATURES = {"speaker": True, "time": True, "match_types": False, "train_embedding": True}


@pytest.mark.parametrize(
    ("settings", "training", "name"),
    [
        ({"levels": 5, "max_turns": 9, "max_words": 50, "variant": "full"}, {"negatives": "file"}, "DAM"),
        ({"variant": "last", "levels": 2}, {"loss": "softmax"}, "DAM_last, 2 levels, softmax"),
        ({"max_turns": 6, "max_words": 24}, {"negatives": "fresh"}, "DAM, 6 x 24 words, fresh negatives"),
        ({"levels": 1, "masking": "release"}, {}, "DAM, 1 level, release mode"),
        ({"lexical_gain": 16.0}, {"ema": 0.99}, "DAM, 16 x TF-IDF, averaged weights"),
        ({"lexical_gain": 16.0, "lexical_power": 1.5}, {}, "DAM, 16 x TF-IDF^1.5"),
        ({"lexical_gain": 0.0, "lexical_power": 1.5}, {"ema": 0.0}, "DAM"),
        ({"lexical": {"gain": 9.0, "power": 1.5, "stems": True}}, {}, "DAM, 9 x TF-IDF^1.5 of stems"),
        ({"lexical_gain": 0.0, "lexical_stems": True}, {}, "DAM"),
        ({"max_turns": 9, "max_words": 24}, {"negatives": "fresh", "negatives_per_positive": 3},
         "DAM, 9 x 24 words, 3 fresh negatives"),
        # One that is drawn is not said to be: the file's are used.
        ({}, {"negatives": "file", "negatives_per_positive": 3, "loss": "pointwise"}, "DAM"),
    ],
)  # fmt: skip
def test_dam_says_where_it_differs_from_the_articles(settings, training, name):
    assert model_name("dam", settings, training) == name


def test_only_the_recipe_of_the_articles_is_called_dam():
    names = {}
    for recipe in ("dam-ubuntu-irc-article", "dam-ubuntu-irc"):
        names[recipe] = model_name("dam", RECIPES[recipe].config, RECIPES[recipe].training)
    expected = "DAM, 2 levels, 6 x 24 words, fresh negatives, softmax"
    assert names == {"dam-ubuntu-irc-article": "DAM", "dam-ubuntu-irc": expected}


@pytest.mark.parametrize(
    ("model", "settings", "name"),
    [
        ("memma", {}, "MEMMA"),
        ("memma", {"speaker": False, "time": False}, "MEMMA, no features"),
        ("memma", {"time": False}, "MEMMA, speaker"),
        ("memma", {"speaker": False}, "MEMMA, time"),
        ("memma", {"match_types": True}, "MEMMA, speaker + time + match types"),
        ("memma", {"train_embedding": False}, "MEMMA, fixed word vectors"),
        ("memma", {"shortcut": "identity"}, "MEMMA, identity shortcut"),
        (
            "memma",
            {"time": False, "train_embedding": False, "shortcut": "none", "divisor": "root"},
            "MEMMA, speaker, fixed word vectors, no shortcut, divisor root",
        ),
        ("memma", {"encoding": "position"}, "MEMMA, weighted by position"),
        ("memma", {"heads": 1, "hops": 5}, "MEMMA, 1 head, 5 hops"),
        ("memma", {"gate": "sigmoid", "memory": "latest"}, "MEMMA, sigmoid gate, latest memory"),
        ("memma", {"heads": 8, "hops": 1}, "MEMMA, 8 heads, 1 hop"),
        ("entity-memma", {}, "Entity MEMMA"),
        ("memn2n", {}, "MemN2N"),
        ("memn2n", {"gated": True, "match_types": True}, "Gated MemN2N, speaker + time + match types"),
        ("memr", {"speaker": False, "time": False}, "MEMR, no features"),
        ("supervised-embeddings", {}, "Supervised embeddings"),
        ("supervised-embeddings", {"match_types": True}, "Supervised embeddings, match types"),
    ],
)
def test_memory_networks_say_what_they_are_given(model, settings, name):
    assert model_name(model, {**FEATURES, **settings}, {}) == name


def test_memory_networks_say_how_they_are_kept_from_learning_by_heart():
    found = model_name("memma", {**FEATURES, "shortcut": "identity", "dropout": 0.3}, {"ema": 0.99, "decay": 0.1})
    assert found == "MEMMA, identity shortcut, dropout 0.3, averaged weights"
    assert model_name("memma", {**FEATURES, "dropout": 0.0}, {"ema": 0.0}) == "MEMMA"


def test_bidaf_says_what_is_left_out_and_how_large_it_is():
    paper = {
        "hidden": 100,
        "embedding_dim": 100,
        "use_words": True,
        "end_pointer": "paper",
        "similarity_start": "glorot",
    }
    assert model_name("bidaf", paper, {}) == "BiDAF"
    other = {**paper, "use_characters": False, "q2c": False, "end_pointer": "official"}
    assert model_name("bidaf", other, {}) == "BiDAF, no characters, no Q2C, official end pointer"
    more = {**paper, "exact_match": True}
    assert model_name("bidaf", more, {"decay": 0.02}) == "BiDAF, exact match, linear decay"
    assert model_name("bidaf", more, {"decay": 1.0}) == "BiDAF, exact match"
    assert model_name("bidaf", {"tuned_words": 1000}, {"optimizer": "adam"}) == "BiDAF, 1,000 words tuned"
    assert model_name("bidaf", {"tuned_words": 0}, {"optimizer": "adadelta"}) == "BiDAF, AdaDelta"
    small = {**paper, "hidden": 40, "embedding_dim": 50, "similarity_start": "dot"}
    assert model_name("bidaf", small, {}) == "BiDAF, 40 units, 50-d vectors, similarity starts as a dot product"


def test_seq2seq_says_what_attends():
    names = {"additive": "additive attention", "none": "no attention", "scaled_dot": "scaled dot attention"}
    names |= {"dot": "dot attention", "luong_dot": "Luong's dot attention"}
    for attention, name in names.items():
        for reverse in (False, True):
            settings = {"attention": attention, "reverse": reverse}
            assert model_name("seq2seq", settings, {}) == f"Seq2seq, {name}" + ", reverse" * reverse
    found = model_name("seq2seq", {"attention": "dot", "output": "all"}, {})
    assert found == "Seq2seq, dot attention, output from all"


def test_settings_of_earlier_code_are_named_as_today():
    assert of_today("dam", {"levels": 2}) == {"levels": 2}
    for attention in ("none", "additive", "general"):
        assert of_today("seq2seq", {"attention": attention})["attention"] == attention


def test_a_record_is_named_by_its_settings_and_its_search():
    settings = {"model": {"levels": 2}, "training": {}}
    assert record_name({"name": "DAM full", "model": "dam", "settings": settings}) == "DAM, 2 levels"
    assert record_name({"name": "HRED"}) == "HRED"
    found = {"name": "x", "model": "seq2seq", "settings": {"model": {"attention": "dot"}}, "search": "beam of 5"}
    assert record_name(found) == "Seq2seq, Luong's dot attention, beam of 5"  # written before there was `output`
    several = {"name": "y", "model": "dam", "settings": {"model": {"levels": 2}}, "seeds": [1, 2, 3]}
    assert record_name(several) == "Ensemble of 3: DAM, 2 levels"
    found["settings"]["model"]["output"] = "state"
    assert record_name(found) == "Seq2seq, dot attention, beam of 5"
    found |= {"settings": {"model": {"attention": "dot", "output": "state", "hidden": 512}}, "text": {"turns": 3}}
    found["before"] = [{"corpus": "x", "epochs": 1.5, "seconds": 60}]
    assert record_name(found) == "Seq2seq, dot attention, 512 units, pre-trained, 3 turns, beam of 5"

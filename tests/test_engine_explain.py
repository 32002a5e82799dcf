"""Pictures of attention: in the terminal, as PNG and JSON, for each task by predict.py."""

import collections
from unittest.mock import Mock

import numpy as np
import pytest
from helpers import TASKS_ONE_FAST, ran, refusal, train_small
from matplotlib import colormaps
from matplotlib.image import imread
from scipy import ndimage

import colloquy
from colloquy.engine.examples import take_examples
from colloquy.engine.explain import draw, explain_examples
from colloquy.tasks import TASKS
from colloquy.tasks.generation.reader import encode_turns
from colloquy.tasks.selection.scoring import score

MAP = {
    "title": "m",
    "rows": ["x", "yy"],
    "columns": ["a", "bcd", "e"],
    "weights": [[0.0, 2.0, -1.0], [1.0, 0.2, 0.5]],
}
DARKEST = np.array(colormaps["Blues"](1.0)[:3])


def dark(path):
    """Where a picture is as dark as its largest weight: `(height, width)`."""
    return np.abs(imread(path)[..., :3] - DARKEST).max(axis=-1) < 0.01


def test_a_picture_has_a_panel_per_map(tmp_path):
    draw([MAP], tmp_path / "one.png", "title")
    zero = {**MAP, "weights": [[0.0, 0.0, 0.0], [0.0, -1.0, 0.0]]}
    draw([zero], tmp_path / "none.png")
    assert dark(tmp_path / "one.png").sum() > 300 and not dark(tmp_path / "none.png").any()
    detail = {**MAP, "group": "g"}
    # two of them have no room
    wide = {**MAP, "columns": list("abcdefghij") * 3, "weights": [[0.0] * 29 + [1.0]] * 2}
    draw([wide, wide, detail, detail, {**detail, "group": "h"}], tmp_path / "five.png")
    cells, _ = ndimage.label(dark(tmp_path / "five.png"))
    tops = collections.Counter(rows.start for rows, _ in ndimage.find_objects(cells))
    assert [tops[top] for top in sorted(tops)] == [1, 1, 2, 1]
    draw([{**MAP, "columns": ["$$", "$5 or $6", "$x"]}], tmp_path / "signs.png")  # no formula


@pytest.mark.parametrize("task", TASKS_ONE_FAST)
def test_predict_explains_examples(task, request, tmp_path):
    run = request.getfixturevalue(f"trained_{task}")
    done = ran("predict.py", f"--run={run.path}", "--explain=2", f"--out={tmp_path}", "--split=dev")
    names = ["example-1.png", "example-2.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert f"{tmp_path / 'example-2.png'}: dev, " in done.stdout
    assert dark(tmp_path / "example-2.png").sum() > 100


def test_maps_are_chosen_by_name(tmp_path, monkeypatch):
    maps = []
    for title in ("turn 1", "turn 1: M_cross 2", "turn 2: M_cross 2", "turn 2: M_self 1"):
        group = {"group": title[:6]} if ":" in title else {}
        words = {"rows": ["a", title], "columns": ["b"], "weights": [[0.5], [1.0]]}
        maps.append({"title": title, **words, **group})
    predictor = Mock(**{"explain.return_value": {"attention": maps}})
    examples = [{"title": "dev, x", "instance": {}}]
    drawn = Mock()
    monkeypatch.setattr("colloquy.engine.explain.draw", drawn)
    explain_examples(predictor, examples, tmp_path, ["M_cross 2"])
    assert drawn.call_args.args[0] == maps[1:3]
    message = refusal(explain_examples, predictor, examples, tmp_path / "2", ["M 9"])
    assert message == "maps: expected some of turn 1, M_cross 2, M_self 1. Received: M 9"


def write_odd_conversations(directory):
    """Conversations with rare words, words with signs in them, and empty turns."""
    directory.mkdir()
    words = ["ubuntu-14", "x86_64", "it's"]
    for split in ("train", "dev", "test"):
        lines = []
        for number in range(30):
            word = words[number % 3]
            context = f"how is {word} and odd{split}{number} ?\t\tyes , it's {word}"
            lines.append(f"1\t{context}\tgood {word}\n")
            lines.append(f"0\t{context}\tno bad{split}{number}\n")
        (directory / f"{split}.txt").write_text("".join(lines), encoding="utf-8")


@pytest.mark.slow
def test_selection_examples_are_the_arrays_that_were_scored(tmp_path):
    """Also unknown words and turns without words, whatever the tokenizer."""
    write_odd_conversations(tmp_path / "raw")
    settings = {"tokenizer": "mixed", "dimension": 8, "min_count": 3}
    data = colloquy.prepare("smn", tmp_path / "raw", tmp_path / "data", **settings)
    run = train_small("selection", data, tmp_path / "run", epochs=0.5)
    task = TASKS["selection"]
    dataset = task.dataset_of(run)
    dev = dataset.splits["dev"]

    examples = take_examples(task, dataset, 30, as_scored=True)
    turns = [turn for example in examples for turn in example["instance"].turns]
    assert "" in turns and any("_UNK_" in turn for turn in turns)
    predictor = task.predictor(run).for_scored_examples()
    logits = []
    for example in examples:
        [answer] = predictor.predict([example["instance"]])
        logits += answer["logits"]
    np.testing.assert_allclose(logits, score(run.load_model(), dev, run.config), atol=1e-4)
    maps = predictor.explain(examples[0]["instance"])["attention"]
    assert any("_UNK_" in shown["rows"] for shown in maps)


def test_generation_examples_are_the_words_that_were_scored(
    trained_generation, generation_predictor
):
    task = TASKS["generation"]
    dataset = task.dataset_of(trained_generation)
    dev = dataset.splits["dev"]
    predictor = generation_predictor.for_scored_examples()
    # Words of a dataset are split already.
    words = encode_turns(["it's UBUNTU-14"], predictor.source_config, predictor.vocabulary).words
    assert words == ["it's", "UBUNTU-14", "_EOS_"]
    for number in range(len(dev)):
        instance = task.read_example(dataset, dev, number)["instance"]
        turns = instance["turns"]
        source = encode_turns(turns, predictor.source_config, predictor.vocabulary).source
        assert source == dev.source.lists([number])[0][-60:]


def test_dialog_examples_are_the_words_that_were_scored(trained_dialog, dialog_predictor):
    task = TASKS["dialog"]
    dataset = task.dataset_of(trained_dialog)
    dev = dataset.splits["dev"]
    predictor = dialog_predictor.for_scored_examples()
    for number, example in enumerate(take_examples(task, dataset, len(dev), as_scored=True)):
        instance = predictor.Instance.model_validate(example["instance"])
        sentences = dev.sentences.words.lists(dev.dialogs[number]["sentences"])
        for sentence, ids in zip(instance.history, sentences, strict=False):
            assert dataset.vocabulary.encode(predictor.reader.split(sentence.text)) == ids

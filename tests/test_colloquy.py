"""`import colloquy`: the functions of a library, and the command line's, which call them."""

import inspect
import re
import sys

import keras
import pytest
from helpers import ROOT, ran, refusal, run_process

import colloquy
from colloquy.commands import COMMANDS, TOOLS, main
from colloquy.engine.run import Run
from colloquy.tasks.selection.retrieval.answers import AnsweringPredictor

FUNCTIONS = (
    colloquy.prepare,
    colloquy.train,
    colloquy.resume,
    colloquy.evaluate,
    colloquy.export,
    colloquy.load,
)


def test_import_is_light_and_every_argument_has_a_type():
    program = "import sys, colloquy; print(len(sys.modules), 'numpy' in sys.modules)"
    count, has_numpy = ran("-c", program, by=run_process).stdout.split()
    assert int(count) < 120 and has_numpy == "False"
    for function in FUNCTIONS:
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty
        for parameter in signature.parameters.values():
            assert parameter.annotation is not inspect.Parameter.empty, function
    assert (ROOT / "colloquy" / "py.typed").is_file()
    assert re.fullmatch(r"\d+\.\d+\.\d+", colloquy.__version__)


def test_a_dataset_is_prepared_and_a_model_trained_scored_and_loaded(prepared_dialog, tmp_path):
    raw = prepared_dialog.parent.parent / "raw"
    data = colloquy.prepare("babi-dialog", raw, tmp_path / "data") / "task1"
    settings = {"embedding_dim": 5, "batch_size": 4, "precision": "float32", "epochs": 0.28}
    run = colloquy.train("supervised-embeddings", data, tmp_path / "run", **settings)
    assert run.path == tmp_path / "run" and run.config.embedding_dim == 5
    [record] = colloquy.evaluate(run, split="dev", baselines=False)
    assert record["metrics"]["per_response"] >= 0 and "baselines" not in record
    keras.config.set_dtype_policy("mixed_bfloat16")  # as after a training in bfloat16
    predictor = colloquy.load(run)
    assert predictor.model.dtype_policy.name == "float32"
    [answer] = predictor.predict([{"history": [{"speaker": "user", "text": "hello"}]}])
    assert "response" in answer
    resumed = colloquy.resume(run, epochs=0.56)
    assert [row["step"] for row in resumed.history()] == [2, 4]


def test_a_published_run_is_known_by_its_name(tmp_path, monkeypatch):
    assert colloquy.pretrained().keys() >= {"bidaf-squad", "dam-ubuntu-irc"}
    assert Run.open("bidaf-squad").path == ROOT / "pretrained" / "bidaf-squad"
    message = refusal(colloquy.load, "bidaf-squat")
    assert "bidaf-squat is not a run directory" in message and "bidaf-squad" in message
    assert "Received: 3" in refusal(colloquy.load, 3)
    # The pages write `pretrained/NAME`, which an installed package knows in any directory.
    monkeypatch.chdir(tmp_path)
    assert Run.open("pretrained/bidaf-squad").path == ROOT / "pretrained" / "bidaf-squad"
    assert "is not a run directory" in refusal(Run.open, "pretrained/absent")


@pytest.mark.slow
def test_responses_are_retrieved_from_an_index_or_ranked_from_a_list(
    trained_selection, selection_index, selection_predictor
):
    assert colloquy.load(trained_selection, index=selection_index).responses > 1
    conversation = {"turns": ["what is the soup like , and the bread ?"]}
    texts = ["tell me about the rain .", "do you like the soup ?", "no ."]
    predictor = colloquy.load(trained_selection.path, candidates=texts)
    [ranked] = predictor.predict([conversation])
    [scored] = selection_predictor.predict([{**conversation, "candidates": texts}])
    assert ranked["candidates"] == [texts[place] for place in scored["order"]]
    assert predictor.explain(conversation)["candidates"] == ranked["candidates"]


def test_what_a_model_cannot_use_is_refused(trained_dialog, selection_predictor, selection_index):
    assert "for a model of selection" in refusal(colloquy.load, trained_dialog, candidates=["x"])
    both = {"index": selection_index, "candidates": ["x"]}
    assert "one of them" in refusal(AnsweringPredictor, selection_predictor, **both)
    for candidates in ("a text", [], [3], [" "]):
        message = refusal(AnsweringPredictor, selection_predictor, candidates=candidates)
        assert message.startswith("candidates are ")
    assert "model: expected one of bidaf" in refusal(colloquy.train, "dan")
    assert "data: expected a directory" in refusal(colloquy.train, "dam", data="")
    assert "corpus: expected one of chitchat" in refusal(colloquy.prepare, "plays", "x", "y")
    settings = {"vocabulary_of": "x", "turns": 3}
    message = refusal(colloquy.prepare, "dailydialog", "x", "y", **settings)
    assert message == "turns is not for vocabulary_of, which takes it from the run or dataset"
    no_list = {"train": None, "dev": []}
    assert "train: expected a list" in refusal(colloquy.prepare, "squad", no_list, "y")
    assert "source: expected a list" in refusal(colloquy.prepare, "conversations", 3, "y")
    without_dev = {"train": [["hi", "hello"]], "test": []}
    message = refusal(colloquy.prepare, "conversations", without_dev, "y")
    assert message.startswith("source: expected a file dev")
    message = refusal(colloquy.prepare, "conversations", [[1, 2]], "y")
    assert message.startswith("source/all.jsonl, line 1: ")


def test_the_program_lists_its_commands_and_runs_the_scripts(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["colloquy", *arguments])
        main()
        return capsys.readouterr().out

    printed = call("--help")
    for name, meaning in COMMANDS.items():
        assert f"{name} " in printed and meaning in printed
        code = (ROOT / "colloquy" / "commands" / f"{name}.py").read_text(encoding="utf-8")
        assert code.startswith(f'"""{meaning}')
        assert f'run_command("{name}")' in (ROOT / f"{name}.py").read_text(encoding="utf-8")
    for name, meaning in TOOLS.items():
        assert f"{name} " in printed and meaning in printed
        assert (ROOT / "tools" / f"{name}.py").is_file()
    assert call("--version") == f"{colloquy.__version__}\n"
    with pytest.raises(SystemExit, match=r"colloquy expects one of prepare, .* Received: trane"):
        call("trane")

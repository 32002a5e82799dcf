"""`tasks.dialog.chat` and its predictor, on a small simulated corpus."""

import types

import numpy as np
import pytest
from terminals import talk_plain

from base.files import UserError
from engine.chat import Note
from engine.run import Run
from engine.train import start
from tasks import TASKS
from tasks.dialog.chat import SHOWN, DialogChat
from tasks.dialog.data import World
from tasks.dialog.scoring import predict

dialog = TASKS["dialog"]


@pytest.fixture(scope="module")
def run(trained_dialog):
    return trained_dialog


@pytest.fixture
def chat(run):
    return DialogChat(dialog.predictor(run))


def says(chat, monkeypatch, *answers):
    """Lets the model prefer these candidates, one after the other."""
    left = [chat.predictor.world.candidates.index(answer) for answer in answers]
    predict = chat.predictor.with_attention.predict_on_batch

    def preferring(inputs):
        logits, *weights = predict(inputs)
        logits = np.zeros_like(np.asarray(logits))
        logits[..., left.pop(0) if left else 0] = 1.0
        return [logits, *weights]

    monkeypatch.setattr(chat.predictor.with_attention, "predict_on_batch", preferring)


def read_by(chat, monkeypatch, history):
    """What the model gets to read of a conversation."""
    found, predict = [], chat.predictor.with_attention.predict_on_batch

    def watched(inputs):
        found.append(types.SimpleNamespace(**inputs))
        return predict(inputs)

    with monkeypatch.context() as patch:
        patch.setattr(chat.predictor.with_attention, "predict_on_batch", watched)
        chat.predictor.predict([{"history": history}])
    return found


# === Conversation ===


def test_unknown_words_capitals_and_punctuation_are_taken(chat):
    assert "pancake" in chat.predictor.world.vocabulary.words
    assert chat.predictor.read("Pancake, XYZZY!") == ["pancake", "xyzzy"]
    note, answer = chat.reply("Xyzzy PANCAKE?")
    assert note == "[Unknown words: xyzzy. /help lists some that I know.]" and isinstance(note, Note)
    assert answer in chat.predictor.world.candidates
    assert chat.history[0] == {"speaker": "user", "text": "xyzzy pancake"}


def test_an_empty_line_is_silence(chat):
    [answer] = chat.reply("")
    assert chat.history == [{"speaker": "user", "text": "<SILENCE>"}, {"speaker": "bot", "text": answer}]


def test_where_no_word_is_known_the_model_is_not_asked(chat):
    [note] = chat.reply("Xyzzy, frobnicate !")
    assert note == "[I know none of these words: xyzzy, frobnicate. /help lists some that I know.]"
    assert chat.history == []


def test_an_interrupted_answer_leaves_nothing_behind(chat, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(chat.predictor, "explain", interrupt)
        with pytest.raises(KeyboardInterrupt):
            list(chat.reply("hello"))
    assert chat.history == []


def test_help_lists_values_and_phrases(chat):
    lines = chat.help().splitlines()
    values = {line.split()[0]: line[16:].split(", ") for line in lines[:3]}
    assert list(values) == ["cuisine", "location", "price"]
    assert values["price"] == ["cheap", "fancy", "modest"] and "pancake" in values["cuisine"]
    assert lines[3] == "People say, for example:" and lines[4:] == chat.predictor.phrases
    assert "that will do , thank you ." in lines


def test_a_sentence_is_cut_to_what_the_model_takes(chat):
    list(chat.reply("hello " * 1000))
    assert len(chat.history[0]["text"].split()) == chat.predictor.model.config.max_words


def test_a_call_brings_its_facts_into_memory(chat, monkeypatch):
    subject = chat.predictor.world.knowledge[0][0]
    has = {relation: value for name, relation, value in chat.predictor.world.knowledge if name == subject}
    call = f"api_call {has['R_cuisine']} {has['R_location']} {has['R_price']}"
    other = next(text for text in chat.predictor.world.candidates if text.startswith("you are welcome"))
    says(chat, monkeypatch, call, other)
    facts = chat.predictor.world.search(call)
    said = f"a {has['R_price']} {has['R_cuisine']} place in {has['R_location']} ."
    assert list(chat.reply(said)) == [call, f"[{len(facts)} facts]", other]
    assert [sentence["text"] for sentence in chat.history] == [said, call, *facts, "<SILENCE>", other]
    assert [sentence["speaker"] for sentence in chat.history] == ["user", "bot", *["fact"] * len(facts), "user", "bot"]
    [read] = read_by(chat, monkeypatch, chat.history[:-1])
    assert read.speakers[0, : len(facts) + 3].tolist() == [1, 2, *[3] * len(facts), 1]
    assert read.times[0, : len(facts) + 3].tolist() == [-1, -1, *[-1] * len(facts), 0]  # turn 0 is the one that asks


def test_a_call_that_finds_nothing_is_not_made_again(chat, monkeypatch):
    monkeypatch.setattr(World, "search", lambda world, call: ["api_call no result"])
    call = next(text for text in chat.predictor.world.candidates if text.startswith("api_call"))
    says(chat, monkeypatch, *[call] * 20)
    cuisine, town, price = call.split()[1:]
    said = list(chat.reply(f"a {price} {cuisine} place in {town} ."))
    assert said[:2] == [call, "[no result]"] and len(said) == 3 and not said[2].startswith("api_call")
    assert next(iter(chat.reply("hello"))) == call  # but once the user has said something


def test_the_chat_says_what_the_predictor_answers(chat):
    for line in ("pancake please .", "in pellwick"):
        [*said] = chat.reply(line)
        asked = {"history": [{"speaker": "user", "text": line}]}
        assert said[0] == chat.predictor.predict([asked])[0]["response"]
        chat.reset()


def test_the_predictor_answers_each_turn_as_the_model_does_in_a_batch(run, chat):
    dataset, predictor, histories = dialog.dataset_of(run), chat.predictor, []
    split = dataset.splits["dev"]
    for each in split.dialogs:
        said = dataset.conversation(split, each)
        histories += [said[: turn + 1] for turn in each["turns"]]
    found = predictor.predict([{"history": said, "candidates": predictor.world.candidates} for said in histories])
    expected = predict(predictor.model, split, predictor.config)
    assert [each["response"] for each in found] == [predictor.world.candidates[number] for number in expected]


def test_attention_shows_the_memories_with_the_largest_weights(chat, monkeypatch):
    assert "empty" in chat.attention()
    others = [text for text in chat.predictor.world.candidates if not text.startswith("api_call")][:7]
    says(chat, monkeypatch, *others)
    for _ in others:
        list(chat.reply("hello"))
    chat._attention[0]["weights"][3] = [0.75, 0.015]
    table = chat.commands["/explain"]("")
    assert [column.header for column in table.columns] == ["", "hop 1", "hop 2"]
    assert (
        table.row_count == SHOWN and "75.00" in list(table.columns[1].cells) and "1.50" in list(table.columns[2].cells)
    )
    assert "8.33" in table.title
    weights = np.array(chat.predictor.explain({"history": chat.history[:-1]})["attention"][0]["weights"])
    assert weights.shape == (12, 2)  # what was said before the last turn, hops
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, atol=1e-5)


def test_attention_says_where_nothing_stands_out(chat):
    list(chat.reply("hello"))
    list(chat.reply("hello"))
    chat._attention[0]["weights"] = [[0.021, 0.02]] * 48 + [[0.0199, 0.0201]]
    assert chat.attention() == "Nothing stands out: each of 49 memories has 1.99 to 2.10 per cent."


def test_a_model_without_attention_says_so(prepared_dialog, tmp_path):
    run = start(dialog, "supervised-embeddings", prepared_dialog, tmp_path / "run", {"epochs": 0.3})
    chat = DialogChat(dialog.predictor(run))
    dataset = dialog.dataset_of(run)
    split = dataset.splits["dev"]
    expected = predict(run.load_model(), split, chat.predictor.config)[0]
    said = dataset.conversation(split, split.dialogs[0])[:1]
    [found] = chat.predictor.predict([{"history": said, "candidates": dataset.world.candidates}])
    assert found["response"] == dataset.world.candidates[expected]
    assert list(chat.reply("hello"))
    assert chat.attention() == "This model has no attention."


def test_a_predictor_answers_a_batch_as_it_answers_one(chat):
    predictor = chat.predictor
    said = [{"speaker": "user", "text": "hello"}, {"speaker": "bot", "text": predictor.world.candidates[3]}]
    instances = [
        {"history": said[:1]},
        {"history": [*said, {"speaker": "user", "text": "thai food please"}], "facts": ["prezzo R_cuisine thai"]},
        {"history": []},
        {"history": said},  # after the bot: silence
    ]
    together = predictor.predict(instances)
    for instance, found in zip(instances, together, strict=True):
        [alone] = predictor.predict([instance])
        assert alone["response"] == found["response"] == found["best"][0]["text"]
        scores = [each["score"] for each in found["best"]]
        np.testing.assert_allclose([each["score"] for each in alone["best"]], scores, rtol=1e-4)
        assert len(scores) == 5 and scores == sorted(scores, reverse=True) and 0 < sum(scores) <= 1
    rows = predictor.explain(instances[1])["attention"][0]["rows"]
    assert rows == ["user: hello", f"bot: {said[1]['text']}", "fact: prezzo R_cuisine thai"]
    assert predictor.explain(instances[0])["attention"] == [] and predictor.predict([]) == []


def test_a_predictor_chooses_among_the_candidates_that_are_given(chat):
    texts = chat.predictor.world.candidates[5:8]
    [found] = chat.predictor.predict([{"history": [], "candidates": texts}])
    assert sorted(each["text"] for each in found["best"]) == sorted(texts)
    assert sum(each["score"] for each in found["best"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("instance", "message"),
    [
        ({"history": [], "candidates": ["no such"]}, "instance 0, candidates: .*Received: 'no such'"),
        (
            {"history": [{"speaker": "cat", "text": "mew"}]},
            "instance 0: history.0.speaker: .*'user', 'bot' or 'fact'.*Received: cat",
        ),
        ({"history": [{"speaker": "user"}]}, "instance 0: .*history.0.text is missing"),
    ],
)
def test_a_predictor_says_what_is_wrong(chat, instance, message):
    with pytest.raises(UserError, match=message):
        chat.predictor.predict([instance])


def test_reset_forgets(chat):
    list(chat.reply("hello"))
    chat.reset()
    assert chat.history == []
    assert "empty" in chat.attention()


# === Terminal ===


def test_talk_reads_until_the_end_and_knows_its_commands(chat):
    printed = talk_plain(chat, "hello", "/nonsense", "/attention", "/reset", "hello")
    assert printed.count("bot: ") >= 2
    assert "Commands: /attention, /explain, /reset, /help, /save, /quit" in printed
    assert "A new conversation." in printed
    assert len(chat.history) >= 2


def test_talk_ends_at_quit(chat):
    assert "bot: " not in talk_plain(chat, "/quit", "hello")


# === Errors ===


def test_a_run_of_another_world_is_refused(run, tmp_path):
    other = Run.create(tmp_path / "other", run.record)
    for name in World.FILES:
        (other.path / name).write_bytes((run.path / name).read_bytes())
    (other.path / "best.weights.h5").write_bytes((run.path / "best.weights.h5").read_bytes())
    candidates = (other.path / "candidates.txt").read_text().splitlines()
    (other.path / "candidates.txt").write_text("\n".join(candidates[1:]) + "\n")
    with pytest.raises(UserError, match=r"the run has candidates .* come from different preparations"):
        DialogChat(dialog.predictor(other))


def test_a_run_without_its_candidates_is_refused(run, tmp_path):
    other = Run.create(tmp_path / "other", run.record)
    (other.path / "vocabulary.txt").write_bytes((run.path / "vocabulary.txt").read_bytes())
    with pytest.raises(UserError, match=r"txt: expected a readable text file\. Received: No such file"):
        DialogChat(dialog.predictor(other))


def test_attention_is_drawn_where_a_file_is_named(chat, tmp_path):
    for _ in range(2):
        list(chat.reply("hello"))
    assert chat.attention(str(tmp_path / "a.png")) == f"{tmp_path / 'a.png'} written"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

"""chat.py and tasks/dialog_chat.py: a conversation in the terminal, on a small simulated corpus."""

import io
import types

import numpy as np
import pytest
from rich.console import Console

import chat as script
from base.files import UserError
from data.vocabulary import Vocabulary
from engine.runs import Run
from engine.training import Fit, train
from tasks import TASKS
from tasks.dialog.answers import predict
from tasks.dialog.chat import SHOWN, DialogChat
from tasks.dialog.dataset import World
from tasks.dialog.knowledge import search
from tasks.reading_comprehension.chat import ReadingComprehensionChat

dialog, reading = TASKS["dialog"], TASKS["reading_comprehension"]
FACTS = [
    ("prezzo", "R_cuisine", "thai"),
    ("prezzo", "R_location", "west"),
    ("zizzi", "R_cuisine", "thai"),
    ("zizzi", "R_location", "east"),
]


@pytest.fixture(scope="module")
def run(trained_dialog):
    return trained_dialog


@pytest.fixture
def chat(run):
    return DialogChat(dialog.predictor(run))


def says(chat, monkeypatch, *answers):
    """Lets the model prefer these candidates, one after the other."""
    left = [chat.predictor.world.candidates.index(answer) for answer in answers]
    predict = chat.predictor.look.predict_on_batch

    def preferring(inputs):
        logits, *weights = predict(inputs)
        logits = np.zeros_like(np.asarray(logits))
        logits[..., left.pop(0) if left else 0] = 1.0
        return [logits, *weights]

    monkeypatch.setattr(chat.predictor.look, "predict_on_batch", preferring)


def read_by(chat, monkeypatch, history):
    """What the model gets to read of a conversation."""
    found, predict = [], chat.predictor.look.predict_on_batch

    def watched(inputs):
        found.append(types.SimpleNamespace(**inputs))
        return predict(inputs)

    with monkeypatch.context() as patch:
        patch.setattr(chat.predictor.look, "predict_on_batch", watched)
        chat.predictor.predict([{"history": history}])
    return found


# === Search ===


@pytest.fixture
def world():
    words = ("_EOS_", "_UNK_", "api_call")
    return World(Vocabulary(words), ["api_call"], FACTS, [])


def test_search_gives_all_facts_of_what_has_every_value(world):
    assert search(world, "api_call thai west") == ["prezzo R_cuisine thai", "prezzo R_location west"]
    assert len(search(world, "api_call thai R_location R_price")) == 4


def test_search_without_a_match_says_so(world):
    assert search(world, "api_call thai north") == ["api_call no result"]
    assert search(world, "api_call tuscan R_location") == ["api_call no result"]


# === Conversation ===


def test_unknown_words_capitals_and_punctuation_are_taken(chat):
    assert "pancake" in chat.predictor.world.vocabulary.words
    assert chat.predictor.read("Pancake, XYZZY!") == ["pancake", "xyzzy"]
    [answer] = [text for text in chat.reply("Xyzzy PANCAKE?")[:1]]
    assert answer in chat.predictor.world.candidates
    assert chat.history[0] == {"speaker": "user", "text": "xyzzy pancake"}


def test_an_empty_line_is_silence(chat):
    chat.reply("   ")
    assert chat.history[0]["text"] == "<SILENCE>"


def test_a_sentence_is_cut_to_what_the_model_takes(chat):
    chat.reply("hello " * 1000)
    assert len(chat.history[0]["text"].split()) == chat.predictor.model.config.max_words


def test_a_call_brings_its_facts_into_memory(chat, monkeypatch):
    subject = chat.predictor.world.knowledge[0][0]
    has = {relation: value for name, relation, value in chat.predictor.world.knowledge if name == subject}
    call = f"api_call {has['R_cuisine']} {has['R_location']} {has['R_price']}"
    other = next(text for text in chat.predictor.world.candidates if not text.startswith("api_call"))
    says(chat, monkeypatch, call, other)
    facts = search(chat.predictor.world, call)
    assert chat.reply("hello") == [call, f"[{len(facts)} facts]", other]
    assert [sentence["text"] for sentence in chat.history] == ["hello", call, *facts, "<SILENCE>", other]
    assert [sentence["speaker"] for sentence in chat.history] == ["user", "bot", *["fact"] * len(facts), "user", "bot"]
    [read] = read_by(chat, monkeypatch, chat.history[:-1])
    assert read.speakers[0, : len(facts) + 3].tolist() == [1, 2, *[3] * len(facts), 1]
    assert read.times[0, : len(facts) + 3].tolist() == [0, 0, *[0] * len(facts), 1]


def test_a_call_that_finds_nothing_does_not_go_on_for_ever(chat, monkeypatch):
    monkeypatch.setattr("tasks.dialog.predictor.search", lambda world, call: ["api_call no result"])
    call = next(text for text in chat.predictor.world.candidates if text.startswith("api_call"))
    says(chat, monkeypatch, *[call] * 20)
    said = chat.reply("hello")
    assert said[1] == "[no result]"
    assert len(said) < 12


def test_the_chat_answers_as_the_model_does_in_a_batch(run, chat):
    dataset = dialog.dataset_of(run)
    split = dataset.splits["dev"]
    expected = predict(chat.predictor.model, split, chat.predictor.model.config)
    words = chat.predictor.world.vocabulary.words
    first = split.sentences.words[split.dialogs[0]["sentences"][0]]
    said = chat.reply(" ".join(words[id - 1] for id in first if id))
    assert said[0] == chat.predictor.world.candidates[expected[0]]


def test_attention_shows_the_memories_with_the_largest_weights(chat, monkeypatch):
    assert "empty" in chat.attention()
    others = [text for text in chat.predictor.world.candidates if not text.startswith("api_call")][:7]
    says(chat, monkeypatch, *others)
    for _ in others:
        chat.reply("hello")
    table = chat.attention()
    assert [column.header for column in table.columns] == ["", "hop 1", "hop 2"]
    assert table.row_count == SHOWN
    weights = np.array(chat.predictor.explain({"history": chat.history[:-1]})["attention"][0]["weights"])
    assert weights.shape == (12, 2)  # what was said before the last turn, hops
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, atol=1e-5)


def test_a_model_without_attention_says_so(prepared_dialog, tmp_path):
    run = train(dialog, "supervised-embeddings", prepared_dialog, tmp_path / "run", Fit(epochs=0.3, batch_size=8), {})
    chat = DialogChat(dialog.predictor(run))
    dataset = dialog.dataset_of(run)
    split = dataset.splits["dev"]
    words = dataset.vocabulary.words
    first = split.sentences.words[split.dialogs[0]["sentences"][0]]
    expected = predict(run.load_model(), split, chat.predictor.config)[0]
    assert chat.reply(" ".join(words[id - 1] for id in first if id))[0] == dataset.world.candidates[expected]
    assert chat.attention() == "This model has no attention."


def test_a_predictor_answers_a_batch_as_it_answers_one(chat):
    predictor = chat.predictor
    said = [{"speaker": "user", "text": "hello"}, {"speaker": "bot", "text": predictor.world.candidates[3]}]
    instances = [
        {"history": said[:1]},
        {"history": [*said, {"speaker": "user", "text": "thai food please"}], "facts": ["prezzo R_cuisine thai"]},
        {"history": []},
        {"history": said},  # behind the bot: silence
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
        ({"history": [], "candidates": ["no such"]}, r"^instance 0: expected candidates that .* Received: 'no such'$"),
        (
            {"history": [{"speaker": "cat", "text": "mew"}]},
            r"^instance 0, history 0: speaker must be one of user, bot, fact\. Received: 'cat'$",
        ),
        ({"history": [{"speaker": "user"}]}, r"^instance 0, history 0: the field text is missing$"),
    ],
)
def test_a_predictor_says_what_is_wrong(chat, instance, message):
    with pytest.raises(UserError, match=message):
        chat.predictor.predict([instance])


def test_reset_forgets(chat):
    chat.reply("hello")
    chat.reset()
    assert chat.history == []
    assert "empty" in chat.attention()


# === Terminal ===


def talk(chat, lines):
    out = io.StringIO()
    console = Console(file=out, width=100)
    left = iter(lines)

    def read(_):
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    console.input = read
    script.talk(chat, console)
    return out.getvalue()


def test_talk_reads_until_the_end_and_knows_its_commands(chat):
    printed = talk(chat, ["hello", "/nonsense", "/attention", "/reset", "hello"])
    assert printed.count("bot: ") >= 2
    assert "Commands: /attention, /reset, /quit" in printed
    assert "A new conversation." in printed
    assert len(chat.history) >= 2


def test_talk_ends_at_quit(chat):
    assert "bot: " not in talk(chat, ["/quit", "hello"])


# === Errors ===


def test_a_run_of_another_world_is_refused(run, tmp_path):
    other = Run.create(tmp_path / "other", run.config)
    for name in World.FILES:
        (other.path / name).write_bytes((run.path / name).read_bytes())
    (other.path / "best.weights.h5").write_bytes((run.path / "best.weights.h5").read_bytes())
    candidates = (other.path / "candidates.txt").read_text().splitlines()
    (other.path / "candidates.txt").write_text("\n".join(candidates[1:]) + "\n")
    with pytest.raises(UserError, match=r"the run has candidates .* come from different preparations"):
        DialogChat(dialog.predictor(other))


def test_a_run_without_its_candidates_is_refused(run, tmp_path):
    other = Run.create(tmp_path / "other", run.config)
    (other.path / "vocabulary.txt").write_bytes((run.path / "vocabulary.txt").read_bytes())
    with pytest.raises(UserError, match=r"txt: expected a readable text file\. Received: No such file"):
        DialogChat(dialog.predictor(other))


# === Reading ===


@pytest.fixture(scope="module")
def reader(trained_reading_comprehension):
    return ReadingComprehensionChat(reading.predictor(trained_reading_comprehension))


def test_an_answer_is_shown_in_its_sentence_and_stands_where_it_says(reader):
    text = "  Ann lives in Rome. Bob e\u0301 👍🏽 lives\n in Paris!\n\n \n\n\u05e9\u05dc\u05d5\u05dd Cyd. "
    assert reader.take(text) == "16 words in 2 paragraphs."
    place, start, end, score = reader.answer("Where does Bob live?")
    answer = reader.paragraphs[place][start:end]
    assert answer and answer in text
    shown, small = reader.reply("Where does Bob live?")
    [span] = shown.spans
    assert shown.plain[span.start : span.end] == answer
    assert small.plain == f"{answer}  (score {score:.1f})"


def test_the_best_of_several_paragraphs_is_taken(reader):
    reader.take("Ann lives in Rome.\n\nBob lives in Paris.\n\nCyd lives in Oslo.")
    scores = []
    for paragraph in list(reader.paragraphs):
        reader.take(paragraph)
        scores.append(reader.answer("Where does Ann live?")[3])
    reader.take("Ann lives in Rome.\n\nBob lives in Paris.\n\nCyd lives in Oslo.")
    place, _, _, score = reader.answer("Where does Ann live?")
    assert place == int(np.argmax(scores))
    assert score == pytest.approx(max(scores), abs=1e-4)


def test_a_question_may_be_longer_than_its_text(reader):
    reader.take("Rome")
    assert reader.reply("Where, of all the places in this wide world, does Ann live?")[0].plain == "Rome"


def test_reading_says_what_it_lacks(reader, tmp_path):
    reader.paragraphs = []
    assert reader.reply("Who?") == ["Give me a text first: /read FILE"]
    assert reader.take(" \n\n ") == "There are no words in this text."
    assert reader.read(str(tmp_path / "missing")).startswith("/read expects a UTF-8 text file.")
    (tmp_path / "notes.txt").write_text("Ann lives in Rome.", encoding="utf-8")
    printed = talk(reader, [f"/read {tmp_path / 'notes.txt'}", "", "Where does Ann live?"])
    assert "5 words in 1 paragraphs." in printed
    assert "Ask a question." in printed
    assert "score" in printed

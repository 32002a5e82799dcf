"""`tasks.selection.retrieval.answers` and chat.py for selection: answers of an index, and the user's own."""

import io
import json
import shutil

import numpy as np
import pytest
from helpers import run_script
from terminals import talk_plain

from base.files import UserError
from engine.run import Run
from serving.models import load
from tasks import TASKS
from tasks.selection.chat import SelectionChat
from tasks.selection.retrieval.answers import Answer, Retriever, candidates_of, ranked, without_duplicates
from tasks.selection.retrieval.build import index_of_run, of_corpus
from tasks.selection.retrieval.index import Hit, RetrievalIndex

selection = TASKS["selection"]


@pytest.fixture(scope="module")
def run(trained_selection):
    return trained_selection


@pytest.fixture(scope="module")
def predictor(run):
    return selection.predictor(run)


@pytest.fixture(scope="module")
def index(run, prepared, tmp_path_factory):
    path = tmp_path_factory.mktemp("indexes") / "index"
    done = run_script("tools/build_index.py", f"--run={run.path}", f"--data={prepared}", f"--out={path}")
    assert done.returncode == 0, done.stderr
    assert f"{path}: " in done.stdout and " responses to " in done.stdout
    return path


@pytest.fixture(scope="module")
def retriever(predictor, index):
    return Retriever(predictor, index)


@pytest.fixture(scope="module")
def conversations(prepared):
    return list(of_corpus("smn", prepared.parent / "raw"))


def test_answers_are_ordered_by_the_model_and_by_their_questions(retriever, predictor, conversations):
    turns = conversations[7][:-1]
    hits = candidates_of(retriever.index, turns, 23)
    texts = [hit.text for hit in hits]
    [found] = predictor.predict([{"turns": turns, "candidates": texts}])
    answers = retriever.answers(turns, 23)
    assert sorted(answer.text for answer in answers) == sorted(texts) and len(texts) > 9
    total = {hit.text: logit + 16 * hit.question for hit, logit in zip(hits, found["logits"], strict=True)}
    assert len({hit.question for hit in hits}) > 3
    assert [total[answer.text] for answer in answers] == sorted(total.values(), reverse=True)
    assert {answer.text: answer.score for answer in answers} == dict(zip(texts, found["scores"], strict=True))
    assert all(answer.hit.text == answer.text and isinstance(answer.hit, Hit) for answer in answers)


def test_candidates_are_responses_to_the_likest_questions_then_what_else_is_found(retriever):
    turns = ["the market is far", "what can you tell me about the town ?"]
    hits = candidates_of(retriever.index, turns, 300)
    asked = [hit.question for hit in hits if "contexts" in hit.places]
    others = [hit for hit in hits if "contexts" not in hit.places]
    assert asked == sorted(asked, reverse=True) == [hit.question for hit in hits[: len(asked)]]
    assert len(asked) > 9 and others and asked[0] > 0.3
    assert hits == without_duplicates(hits, turns) and candidates_of(retriever.index, turns, 5) == hits[:5]


def test_a_context_is_encoded_once_for_all_its_candidates(predictor, conversations, monkeypatch):
    calls, predict = [], predictor.model.predict_on_batch

    def counting(inputs):
        calls.append((inputs["turns"].shape[0], inputs["responses"].shape[:2]))
        return predict(inputs)

    candidates = [turns[-1] for turns in conversations[:37]]
    instance = {"turns": conversations[3][:-1], "candidates": ["hello"] * 31}
    monkeypatch.setattr(predictor.model, "predict_on_batch", counting)
    predictor.predict([instance])
    assert calls == [(1, (1, 31))]
    calls.clear()
    together = predictor.predict([{**instance, "candidates": candidates}])[0]["logits"]
    assert len(calls) <= 2  # in two halves where the shorter half is much shorter
    alone = [predictor.predict([{**instance, "candidates": [text]}])[0]["logits"][0] for text in candidates]
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_raw_texts_are_split_by_the_tokenizer_of_the_run(run, predictor):
    instance = {"turns": ["hello there !"], "candidates": ["what is it , then ?"]}
    raw = {"turns": ["Hello there!"], "candidates": ["What is it, then?"]}
    assert predictor.predict([raw]) != predictor.predict([instance])  # the tests' data are split at white space
    text = {"tokenizer": "terms", "lower": True}
    as_written = selection.predictor(Run(run.path, {**run.record, "dataset": {**run.dataset, "text": text}}))
    assert as_written.predict([raw]) == as_written.predict([instance]) == predictor.predict([instance])


def test_near_duplicates_and_echoes_are_left_out():
    texts = ["Try this kernel, it works!", "try this kernel it works", "try that", "How do I mount it??", "ok", "OK."]
    found = without_duplicates([Answer(text, 0.5) for text in texts], ["hi", "how do i mount it"])
    assert [answer.text for answer in found] == ["Try this kernel, it works!", "try that", "ok"]


def test_duplicates_need_most_words_in_common():
    texts = ["a b c d", "a b c d e", "a b c d e f", "?", "!", "?"]  # 4 of 5 words; 5 of 6, but of what is left out
    assert [answer.text for answer in without_duplicates([Answer(t, 0.5) for t in texts], [])] == [
        "a b c d",
        "a b c d e f",
        "?",
        "!",
    ]


def test_benchmark_counts_what_is_found(run, prepared, tmp_path):
    record = benchmark(run, prepared, tmp_path, "retrieval", "--what=found")
    assert record["contexts"] == 5 and record["true_response_in_index"] in (0.2, 0.4, 0.6, 0.8, 1.0)
    found = {row["found_by"]: row for row in record["rows"]}
    assert list(found) == ["BM25", "contexts", "vectors", "together", "model"]
    assert found["model"]["R@100"] == found["together"]["R@100"]  # ranking changes the order of the first 32 alone
    assert (
        found["model"]["R@1"] <= found["model"]["R@10"] <= found["model"]["R@100"] <= record["true_response_in_index"]
    )
    assert found["contexts"]["R@100"] == 0  # the true responses stand in the index without their contexts


def test_benchmark_compares_what_is_answered(run, prepared, tmp_path):
    record = benchmark(run, prepared, tmp_path, "answers")
    rows = {row.pop("chosen_by"): row for row in record["rows"]}
    weighted = [f"model and {weight} x question" for weight in (0, 8, 12, 16, 24, 32, 64)]
    assert list(rows) == ["people", "any", "words", "model and 16 x words", "question", *weighted]
    assert all(0 <= row["echo"] <= 1 and row["echo_error"] >= 0 for row in rows.values())
    assert rows["people"]["news"] == max(row["news"] for row in rows.values()) > 0
    assert rows["words"]["echo"] >= rows["question"]["echo"]  # the likest to what was said, of all that was found
    others = [row["chosen_by"] for row in record["of_the_others"]]
    assert others == ["people", "model and 16 x words", record["chosen"]] and record["chosen"] in weighted


def benchmark(run, prepared, tmp_path, script, *arguments):
    """The record of a benchmark over five contexts."""
    out = tmp_path / "record.json"
    source = f"--source={prepared.parent / 'raw'}"
    done = run_script(
        f"benchmarks/{script}.py", f"--run={run.path}", source, "--contexts=5", f"--out={out}", *arguments
    )
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


# === Explanation ===


def test_matches_are_those_of_the_model(predictor):
    import keras

    words = predictor.vocabulary.words[2:9]
    turns, candidate = [" ".join(words[:3]), "", " ".join(words[3:5])], " ".join(words[4:6])
    tables = predictor.explain({"turns": turns, "candidates": ["", candidate]})["attention"]
    best = predictor.predict([{"turns": turns, "candidates": ["", candidate]}])[0]["order"][0]
    if best == 0:
        assert tables == []
        tables = predictor.explain({"turns": turns, "candidates": [candidate]})["attention"]
    assert [(table["title"], table["rows"], table["columns"]) for table in tables] == [
        ("turn 1", list(words[:3]), list(words[4:6])),
        ("turn 3", list(words[3:5]), list(words[4:6])),
    ]
    ids = [predictor.vocabulary.encode(text.split()) for text in turns]
    inputs = {
        "turns": np.array([[row + [0] * (3 - len(row)) for row in ids]]),
        "responses": np.array([[predictor.vocabulary.encode(candidate.split())]]),
    }
    *channels, _ = keras.Model(predictor.model.input, predictor.model.get_layer("aggregation").input)(inputs)
    M_TKJ = np.mean([keras.ops.convert_to_numpy(channel)[0, 0] for channel in channels], axis=0)
    assert len(channels) == 4
    for table, M_KJ in ((tables[0], M_TKJ[0]), (tables[1], M_TKJ[2, :2])):
        np.testing.assert_allclose(table["weights"], np.maximum(M_KJ, 0) / M_TKJ.max(), atol=1e-5)


# === Chat ===


@pytest.fixture
def chat(predictor, index):
    return SelectionChat(predictor, index=index)


def test_the_chat_says_the_best_answer_and_remembers_it(chat, retriever):
    question = "what can you tell me about the town ?"
    [said] = chat.reply(question)
    assert said == retriever.answers([question])[0].text
    assert chat.said == [question, said]
    [then] = chat.reply("and the market ?")
    assert then == retriever.answers([question, said, "and the market ?"])[0].text


def test_an_empty_line_does_nothing(chat):
    assert chat.reply("  ") == [] and chat.said == []


def test_a_line_that_nobody_knows_says_so(chat):
    assert chat.reply("zork zork") == ["[Nothing in the index has a word of that.]"]
    assert chat.more() == chat.explain() == "Say something first."


def test_more_shows_scores_and_sources(chat):
    chat.reply("what can you tell me about the town ?")
    lines = chat.more("3").split("\n")
    assert len(lines) == 6
    for place, (line, source) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        answer = chat.found[place]
        assert line == f"{place + 1:3}  {answer.score:.3f}  {answer.text}"
        assert source.strip().startswith("said to: ") and answer.hit.context[-1] in source
        assert all(f"{search} {n}" in source for search, n in answer.hit.places.items())
    assert len(chat.more().split("\n")) == 10
    assert chat.more("x") == chat.more("0").replace("0", "x") == "/more expects how many answers to show. Received: x"


def test_explain_shows_the_best_match_of_each_word(chat):
    [said] = chat.reply("what can you tell me about the town ?")
    lines = chat.explain().split("\n")
    words = said.split()[-5:]  # what the model reads
    assert [line.split()[0] for line in lines[:-1]] == words
    assert "(turn 1)" in lines[0]


def test_reset_forgets(chat):
    chat.reply("what can you tell me about the town ?")
    chat.reset()
    assert chat.said == [] and chat.more() == "Say something first."


def test_own_answers_are_ranked(predictor, tmp_path):
    file = tmp_path / "answers.txt"
    file.write_text("yes\n\n  no thank you\nthe town is old\n", encoding="utf-8")
    chat = SelectionChat(predictor, candidates=file)
    [said] = chat.reply("what can you tell me about the town ?")
    best = ranked(predictor, ["what can you tell me about the town ?"], ["yes", "no thank you", "the town is old"])
    assert said == best[0].text
    assert chat.more().split("\n") == [f"{i:3}  {a.score:.3f}  {a.text}" for i, a in enumerate(best, 1)]


@pytest.mark.parametrize("content", [None, b"", b"\n \n", b"\xff"])
def test_a_file_without_answers_is_refused(predictor, tmp_path, content):
    file = tmp_path / "answers.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=r"answers.txt: expected .*an answer per line"):
        SelectionChat(predictor, candidates=file)


def test_chat_script_answers_and_ends(run, index, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("what can you tell me ?\n/more 1\n\n/quit\n"))
    done = run_script("chat.py", f"--run={run.path}", f"--index={index}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    assert "said to: " in done.stdout and "/more N" in done.stdout


@pytest.fixture
def run_with_pairs(run, prepared, tmp_path):
    """A run directory with the conversations that it was trained on."""
    path = shutil.copytree(run.path, tmp_path / "given")
    shutil.copytree(prepared.parent / "raw", path / "pairs")
    return path


def test_a_run_with_pairs_gets_its_index_when_it_is_needed(run_with_pairs, predictor, conversations, capsys):
    built = index_of_run(run_with_pairs, predictor)
    assert built == run_with_pairs / "index"
    assert capsys.readouterr().out == f"{built}: built once, of {run_with_pairs / 'pairs'}\n"
    stored = RetrievalIndex(built, predictor.vocabulary)
    assert stored.config["made_of"] == ["pairs"] and stored.size > 9
    assert {stored.utterance(number) for number in range(stored.size)} <= {t for talk in conversations for t in talk}
    before = (built / "config.json").stat().st_mtime_ns
    assert index_of_run(run_with_pairs, predictor) == built and capsys.readouterr().out == ""
    assert (built / "config.json").stat().st_mtime_ns == before


def test_no_index_is_built_without_pairs_or_where_nothing_may_be_written(run, run_with_pairs, predictor, monkeypatch):
    assert index_of_run(run.path, predictor) is None
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert index_of_run(run_with_pairs, predictor) is None and not (run_with_pairs / "index").exists()


def test_pairs_at_fault_are_named_and_nothing_is_left(run_with_pairs, predictor):
    (run_with_pairs / "pairs" / "train.txt").write_text("1\tno response\n")
    with pytest.raises(UserError, match=r"train.txt, line 1"):
        index_of_run(run_with_pairs, predictor)
    assert not [path.name for path in run_with_pairs.iterdir() if "index" in path.name]


def test_a_model_that_came_with_pairs_is_talked_to_and_served(run_with_pairs, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("what can you tell me about the town ?\n"))
    done = run_script("chat.py", f"--run={run_with_pairs}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    assert load("dam", run_with_pairs).metadata()["responses"] > 9


def test_chat_script_needs_an_index_or_candidates(run, index):
    for flags in ([], [f"--index={index}", "--candidates=x"]):
        done = run_script("chat.py", f"--run={run.path}", *flags)
        assert done.returncode == 1
        assert "give --index=DIR (tools.build_index) or --candidates=FILE" in done.stderr


def test_talk_shows_an_answer_once(chat):
    printed = talk_plain(chat, "what can you tell me ?", "", "/explain", "/nonsense")
    assert printed.count("bot: ") == 1
    assert "Commands: /more, /explain, /reset, /help, /save, /quit" in printed

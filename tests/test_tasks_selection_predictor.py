"""`tasks.selection.predictor` and `chat`: maps against loops from DAM's equations, answers in a
chat.
"""

import io
import re

import numpy as np
import pytest
from helpers import randomised, refusal, run_script
from reference import block_in_loops, block_weights
from reference_recurrent import softmax

from colloquy.engine.run import Run
from colloquy.models.dam import DAM, DAMConfig, release_settings
from colloquy.serving.models import open_model
from colloquy.tasks import TASKS
from colloquy.tasks.selection.chat import SelectionChat
from colloquy.tasks.selection.predictor import Matching
from colloquy.tasks.selection.retrieval.answers import answers_of, ranked
from colloquy.tasks.selection.retrieval.index import Hit, RetrievalIndex

T, K, J, D, L = 2, 5, 3, 7, 2
TURNS, RESPONSE = [["a", "b", "c", "d", "e"], ["c", "a"]], ["e", "b", "b"]
IDS = {
    "turns": np.array([[[1, 2, 3, 4, 5], [3, 1, 0, 0, 0]]]),
    "responses": np.array([[[5, 2, 2]]]),
}
SIZES = {
    "vocabulary_size": 5,
    "embedding_dim": D,
    "max_turns": T,
    "max_words": K,
    "levels": L,
    "conv_filters": (2, 3),
}


@pytest.fixture(scope="module")
def model():
    return randomised(DAM(DAMConfig(**SIZES)), seed=1)


def attend(layer, Q, K):
    """Weights and output of an attentive module on two sentences without padding."""
    Att = np.array([softmax([q @ k / np.sqrt(D) for k in K]) for q in Q])
    return Att, block_in_loops(Q, K, K, block_weights(layer))


def expected(model):
    """`{title: matrix}` of all detailed maps, turn by turn, word by word."""
    table = np.asarray(model.get_layer("word_embedding").get_weights()[0])
    found = {}
    for t, words in enumerate(TURNS, 1):
        U, R = (
            table[["abcde".index(word) + 1 for word in sentence]] for sentence in (words, RESPONSE)
        )
        for level in range(L + 1):
            match = model.get_layer(f"cross_match_{level}")
            on_response, U_ = attend(match.utterance_attends, U, R)
            on_turn, R_ = attend(match.response_attends, R, U)
            found[f"turn {t}: M_self {level}"], found[f"turn {t}: M_cross {level}"] = (
                U @ R.T,
                U_ @ R_.T,
            )
            found[f"turn {t} on response {level}"], found[f"response on turn {t} {level}"] = (
                on_response,
                on_turn,
            )
            if level < L:
                name, layer = (
                    f"self-attention {level + 1}",
                    model.get_layer(f"self_attention_{level}"),
                )
                found[f"turn {t}: {name}"], U = attend(layer, U, U)
                found[f"response: {name}"], R = attend(layer, R, R)
    return found


def test_maps_match_the_equations(model):
    summary, details = {}, {}
    for each in Matching(model).maps(IDS, TURNS, RESPONSE, details=True):
        (details if "group" in each else summary)[each["title"]] = each
    wanted = expected(model)
    assert details.keys() == wanted.keys()
    for title, each in details.items():
        np.testing.assert_allclose(each["weights"], wanted[title], atol=1e-4, err_msg=title)
    words = {title: (each["rows"], each["columns"]) for title, each in details.items()}
    assert words["turn 2: M_cross 1"] == words["turn 2 on response 1"] == (TURNS[1], RESPONSE)
    assert words["response on turn 1 0"] == (RESPONSE, TURNS[0])
    assert words["turn 1: self-attention 2"] == (TURNS[0], TURNS[0])
    groups = (
        "turn 1: matches",
        "turn 2: matches",
        "response: attention",
        "turn 1: attention",
        "turn 2: attention",
    )
    assert tuple(dict.fromkeys(each["group"] for each in details.values())) == groups
    matches = [
        [wanted[title] for title in wanted if title.startswith(f"turn {t}: M_")] for t in (1, 2)
    ]
    means = [np.mean(each, axis=0) for each in matches]
    assert min(mean.min() for mean in means) < 0  # which become 0
    for each, mean in zip(summary.values(), means, strict=True):
        np.testing.assert_allclose(
            each["weights"], np.maximum(mean, 0) / max(m.max() for m in means), atol=1e-4
        )
    assert list(summary) == ["turn 1", "turn 2"]
    # sentences without words have no map
    ids = {"turns": np.array([[[0] * K, [3, 1, 0, 0, 0]]]), "responses": IDS["responses"]}
    titles = [
        each["title"] for each in Matching(model).maps(ids, [[], TURNS[1]], RESPONSE, details=True)
    ]
    assert titles[0] == "turn 2" and not any("turn 1" in title for title in titles)
    nothing = {**IDS, "responses": np.zeros((1, 1, J), "int32")}
    assert Matching(model).maps(nothing, TURNS, [], details=True) == []


@pytest.mark.parametrize("variant", ["first", "last"])
def test_variants_show_the_matches_that_they_have(variant):
    # its image has the response's words first
    settings = release_settings(variant) if variant == "last" else {}
    model = randomised(DAM(DAMConfig(**SIZES, variant=variant, **settings)), seed=2)
    J_padding = [0] * (K - J) if settings else []  # the release pads all to the largest size
    ids = {**IDS, "responses": np.array([[[5, 2, 2, *J_padding]]])}
    names = {"first": ["M_cross 0", "M_self 0"], "last": [f"M_cross {L}", f"M_self {L}"]}
    maps = Matching(model).maps(ids, TURNS, RESPONSE, details=True)
    matches = [each for each in maps if ": M_" in each["title"]]
    assert [each["title"] for each in matches] == [
        f"turn {t}: {name}" for t in (1, 2) for name in names[variant]
    ]
    assert all(np.shape(each["weights"]) == (len(each["rows"]), J) for each in matches)
    if variant == "first":
        table = np.asarray(model.get_layer("word_embedding").get_weights()[0])
        np.testing.assert_allclose(
            matches[3]["weights"], table[[3, 1]] @ table[[5, 2, 2]].T, atol=1e-5
        )
    for each in maps:
        if "attention" in each.get("group", "") and not settings:
            np.testing.assert_allclose(np.sum(each["weights"], axis=1), 1.0, atol=1e-5)


def test_the_best_candidate_is_explained_by_its_words(selection_predictor):
    words = selection_predictor.vocabulary.words[2:9]
    turns, candidate = [" ".join(words[:3]), "", " ".join(words[3:5])], " ".join(words[4:6])
    maps = selection_predictor.explain({"turns": turns, "candidates": [candidate]})["attention"]
    assert [(each["title"], each["rows"], each["columns"]) for each in maps] == [
        ("turn 1", list(words[:3]), list(words[4:6])),
        ("turn 3", list(words[3:5]), list(words[4:6])),
    ]
    for candidates in (["", candidate], [candidate, ""]):
        explained = selection_predictor.explain({"turns": turns, "candidates": candidates})
        assert explained["attention"] == (maps if candidates[explained["order"][0]] else [])


def test_a_context_is_encoded_once_for_all_its_candidates(selection_predictor, monkeypatch):
    calls, predict = [], selection_predictor.model.predict_on_batch

    def counting(inputs):
        calls.append((inputs["turns"].shape[0], inputs["responses"].shape[:2]))
        return predict(inputs)

    words = selection_predictor.vocabulary.words
    candidates = [" ".join(words[i : i + 1 + i % 7]) for i in range(3, 40)]
    instance = {"turns": [" ".join(words[5:9])], "candidates": ["hello"] * 31}
    monkeypatch.setattr(selection_predictor.model, "predict_on_batch", counting)
    selection_predictor.predict([instance])
    assert calls == [(1, (1, 31))]
    together = selection_predictor.predict([{**instance, "candidates": candidates}])[0]["logits"]
    alone = [
        selection_predictor.predict([{**instance, "candidates": [text]}])[0]["logits"][0]
        for text in candidates
    ]
    np.testing.assert_allclose(together, alone, atol=1e-4)


def test_raw_texts_are_split_by_the_tokenizer_of_the_run(trained_selection, selection_predictor):
    instance = {"turns": ["hello there !"], "candidates": ["what is it , then ?"]}
    raw = {"turns": ["Hello there!"], "candidates": ["What is it, then?"]}
    # The tests' data are split at white space.
    assert selection_predictor.predict([raw]) != selection_predictor.predict([instance])
    dataset = {**trained_selection.dataset, "text": {"tokenizer": "terms", "lower": True}}
    run = Run(trained_selection.path, {**trained_selection.record, "dataset": dataset})
    as_written = TASKS["selection"].predictor(run)
    assert (
        as_written.predict([raw])
        == as_written.predict([instance])
        == selection_predictor.predict([instance])
    )


# === Chat ===

QUESTION = "what can you tell me about the town ?"


@pytest.fixture
def chat(selection_predictor, selection_index):
    return SelectionChat(selection_predictor, index=selection_index)


def test_the_chat_says_the_best_answer_and_remembers_it(chat, selection_predictor, selection_index):
    index = RetrievalIndex(selection_index, selection_predictor.vocabulary)
    assert chat.reply("  ") == [] and chat.said == []
    [said] = chat.reply(QUESTION)
    assert said == answers_of(selection_predictor, index, [QUESTION])[0].text
    assert chat.said == [QUESTION, said]
    [then] = chat.reply("and the market ?")
    assert (
        then == answers_of(selection_predictor, index, [QUESTION, said, "and the market ?"])[0].text
    )
    chat.reset()
    assert chat.said == [] and chat.more() == "Say something first."
    assert chat.reply("zork zork") == ["[The index has no response with these words.]"]
    assert chat.more() == chat.explain() == "Say something first."


def test_more_shows_scores_and_sources(chat):
    chat.reply(QUESTION)
    lines = chat.more("3").split("\n")
    assert len(lines) == 6
    for place, (line, source) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        answer = chat.found[place]
        assert line == f"{place + 1:3}  {answer.total:6.2f}  {answer.text}"
        assert source.strip().startswith("said to: ") and answer.context[-1] in source
        assert all(f"{search} {n}" in source for search, n in answer.ranks.items())
    assert len(chat.more().split("\n")) == 10
    assert (
        chat.more("x")
        == chat.more("0").replace("0", "x")
        == "/more expects how many answers to show. Received: x"
    )


def test_explain_shows_the_best_match_of_each_word(chat):
    [said] = chat.reply(QUESTION)
    lines = chat.explain().split("\n")
    assert [line.split()[0] for line in lines[:-1]] == said.split()[-5:]  # what the model reads
    assert "(turn 1)" in lines[0]


def test_own_answers_are_ranked(selection_predictor, tmp_path):
    file = tmp_path / "answers.txt"
    file.write_text("yes\n\n\u3000\n  no thank you\nthe town is old\n", encoding="utf-8")
    chat = SelectionChat(selection_predictor, candidates=file)
    [said] = chat.reply(QUESTION)
    best = ranked(
        selection_predictor,
        [QUESTION],
        [Hit(text) for text in ("yes", "no thank you", "the town is old")],
    )
    assert said == best[0].text
    assert chat.more().split("\n") == [
        f"{i:3}  {a.total:6.2f}  {a.text}" for i, a in enumerate(best, 1)
    ]


@pytest.mark.parametrize(
    ("content", "message"), [(None, "readable text file"), (b"\n \n", "an answer per line")]
)
def test_a_file_without_answers_is_refused(selection_predictor, tmp_path, content, message):
    file = tmp_path / "answers.txt"
    if content is not None:
        file.write_bytes(content)
    found = refusal(SelectionChat, selection_predictor, None, file)
    assert re.search(rf"answers.txt.*: expected .*{message}", found)


def test_script_answers_from_an_index(trained_selection, selection_index, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("what can you tell me ?\n/more 1\n\n/quit\n"))
    done = run_script("chat.py", f"--run={trained_selection.path}", f"--index={selection_index}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    assert "said to: " in done.stdout and "/more N" in done.stdout
    for flags in ([], [f"--index={selection_index}", "--candidates=x"]):
        done = run_script("chat.py", f"--run={trained_selection.path}", *flags)
        assert done.returncode == 1
        assert "give --index=DIR (tools.build_index) or --candidates=FILE" in done.stderr


def test_a_model_that_came_with_pairs_is_talked_to_and_served(run_with_pairs, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{QUESTION}\n"))
    done = run_script("chat.py", f"--run={run_with_pairs}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    assert open_model("dam", run_with_pairs).metadata["responses"] > 9

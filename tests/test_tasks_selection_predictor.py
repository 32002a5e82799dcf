"""`tasks.selection.predictor` and `chat`: maps by DAM's equations, answers in a chat."""

import io
import types

import numpy as np
import pytest
from helpers import randomised, refusal, run_script
from reference import block_in_loops, block_weights
from reference_recurrent import softmax

from colloquy.engine.run import Run
from colloquy.models.dam import DAM, DAMConfig
from colloquy.tasks import TASKS, load_predictor
from colloquy.tasks.selection.chat import SelectionChat, read_candidates
from colloquy.tasks.selection.doubt import load_threshold, measure_doubt
from colloquy.tasks.selection.matching import Matching
from colloquy.tasks.selection.predictor import LOW_SCORES
from colloquy.tasks.selection.retrieval.answers import (
    NOTHING_FOUND,
    AnsweringPredictor,
)
from colloquy.tasks.selection.split import SelectionSplit

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


@pytest.fixture(scope="module")
def matching(model):
    return Matching(model)


def attend(layer, Q, K):
    """Weights and output of an attentive module on two sentences without padding."""
    Att = np.array([softmax([q @ k / np.sqrt(D) for k in K]) for q in Q])
    return Att, block_in_loops(Q, K, K, block_weights(layer))


def word_vectors(model, words):
    table = np.asarray(model.get_layer("word_embedding").get_weights()[0])
    return table[["abcde".index(word) + 1 for word in words]]


def expected_maps(model):
    """`{title: matrix}` of all detailed maps, turn by turn, word by word."""
    maps = {}
    for t, words in enumerate(TURNS, 1):
        U = word_vectors(model, words)
        R = word_vectors(model, RESPONSE)
        for level in range(L + 1):
            match = model.get_layer(f"cross_match_{level}")
            on_response, attended_U = attend(match.utterance_attends, U, R)
            on_turn, attended_R = attend(match.response_attends, R, U)
            maps[f"turn {t}: M_self {level}"] = U @ R.T
            maps[f"turn {t}: M_cross {level}"] = attended_U @ attended_R.T
            maps[f"turn {t} on response {level}"] = on_response
            maps[f"response on turn {t} {level}"] = on_turn
            if level < L:
                name = f"self-attention {level + 1}"
                layer = model.get_layer(f"self_attention_{level}")
                maps[f"turn {t}: {name}"], U = attend(layer, U, U)
                maps[f"response: {name}"], R = attend(layer, R, R)
    return maps


def test_detailed_maps_match_the_equations(model, matching):
    maps = matching.maps(IDS, TURNS, RESPONSE, details=True)
    details = {shown["title"]: shown for shown in maps if "group" in shown}
    expected = expected_maps(model)
    assert details.keys() == expected.keys()
    for title, shown in details.items():
        np.testing.assert_allclose(shown["weights"], expected[title], atol=1e-4, err_msg=title)

    words = {title: (shown["rows"], shown["columns"]) for title, shown in details.items()}
    assert words["turn 2: M_cross 1"] == words["turn 2 on response 1"] == (TURNS[1], RESPONSE)
    assert words["response on turn 1 0"] == (RESPONSE, TURNS[0])
    assert words["turn 1: self-attention 2"] == (TURNS[0], TURNS[0])
    groups = list(dict.fromkeys(shown["group"] for shown in details.values()))
    assert groups == [
        "turn 1: matches",
        "turn 2: matches",
        "response: attention",
        "turn 1: attention",
        "turn 2: attention",
    ]


def test_the_first_maps_are_means_of_the_matches(model, matching):
    expected = expected_maps(model)
    means = []
    for t in (1, 2):
        matches = [M for title, M in expected.items() if title.startswith(f"turn {t}: M_")]
        means.append(np.mean(matches, axis=0))
    assert min(mean.min() for mean in means) < 0  # which become 0
    largest = max(mean.max() for mean in means)
    maps = matching.maps(IDS, TURNS, RESPONSE)
    assert [shown["title"] for shown in maps] == ["turn 1", "turn 2"]
    for shown, mean in zip(maps, means, strict=True):
        np.testing.assert_allclose(shown["weights"], np.maximum(mean, 0) / largest, atol=1e-4)


def test_sentences_without_words_have_no_map(matching):
    ids = {"turns": np.array([[[0] * K, [3, 1, 0, 0, 0]]]), "responses": IDS["responses"]}
    maps = matching.maps(ids, [[], TURNS[1]], RESPONSE, details=True)
    titles = [shown["title"] for shown in maps]
    assert titles[0] == "turn 2" and not any("turn 1" in title for title in titles)
    nothing = {**IDS, "responses": np.zeros((1, 1, J), "int32")}
    assert matching.maps(nothing, TURNS, [], details=True) == []


@pytest.mark.parametrize("variant", ["first", "last"])
def test_variants_show_the_matches_that_they_have(variant):
    # its image has the response's words first
    settings = DAMConfig.release_settings(variant) if variant == "last" else {}
    model = randomised(DAM(DAMConfig(**SIZES, variant=variant, **settings)), seed=2)
    J_padding = [0] * (K - J) if settings else []  # the release pads all to the largest size
    ids = {**IDS, "responses": np.array([[[5, 2, 2, *J_padding]]])}
    names = {"first": ["M_cross 0", "M_self 0"], "last": [f"M_cross {L}", f"M_self {L}"]}
    maps = Matching(model).maps(ids, TURNS, RESPONSE, details=True)
    matches = [shown for shown in maps if ": M_" in shown["title"]]
    titles = [f"turn {t}: {name}" for t in (1, 2) for name in names[variant]]
    assert [shown["title"] for shown in matches] == titles
    assert all(np.shape(shown["weights"]) == (len(shown["rows"]), J) for shown in matches)
    if variant == "first":
        M = word_vectors(model, TURNS[1]) @ word_vectors(model, RESPONSE).T
        np.testing.assert_allclose(matches[3]["weights"], M, atol=1e-5)


def test_the_best_candidate_is_explained_by_its_words(selection_predictor):
    words = selection_predictor.vocabulary.words[2:9]
    turns = [" ".join(words[:3]), " ".join(words[3:5])]
    candidate = " ".join(words[4:6])
    answer = selection_predictor.explain({"turns": turns, "candidates": [candidate]})
    maps = answer["attention"]
    assert [(shown["title"], shown["rows"], shown["columns"]) for shown in maps] == [
        ("turn 1", list(words[:3]), list(words[4:6])),
        ("turn 2", list(words[3:5]), list(words[4:6])),
    ]
    for candidates in (["", candidate], [candidate, ""]):
        answer = selection_predictor.explain({"turns": turns, "candidates": candidates})
        is_candidate_best = candidates[answer["order"][0]] == candidate
        assert answer["attention"] == (maps if is_candidate_best else [])


def test_a_ranking_without_a_shared_word_or_with_low_scores_is_not_called_good(
    selection_predictor, monkeypatch
):
    instances = [
        {"turns": ["the town , then"], "candidates": candidates}
        for candidates in (["yes , no", "and"], ["yes", "a town"])
    ]
    doubted, good = selection_predictor.predict(instances)
    assert not doubted["good"] and "shares a word" in doubted["reason"]
    assert good["good"] and "reason" not in good
    monkeypatch.setattr(selection_predictor, "threshold", max(good["logits"]) + 1.0)
    [low] = selection_predictor.predict(instances[1:])
    assert not low["good"] and "scores lower" in low["reason"]
    assert low["logits"] == good["logits"]


def test_the_threshold_keeps_right_first_responses_and_doubts_rankings_without_one(
    trained_selection,
):
    """Right responses have 1.0 to 10.0; of ten rankings, five decide."""
    contexts = [[5 + number, 1] for number in range(10) for _ in range(2)]
    split = SelectionSplit.of(contexts, [[3], [4]] * 10, [1, 0] * 10, 1)
    right = np.arange(1.0, 11.0)
    scores = np.stack([right, right - 6.0], axis=1).ravel()
    record = measure_doubt(split, scores)
    assert record["threshold"] == pytest.approx(np.quantile([1.0, 3.0, 5.0, 7.0, 9.0], 0.08))
    assert record["right_kept"] == 1.0
    assert record["without_right_doubted"] == 3 / 5  # 2, 4 and 6 less 6 of 2, 4, 6, 8 and 10
    assert measure_doubt(split, -scores) is None
    run = types.SimpleNamespace(path=trained_selection.path, metrics=lambda: {})
    assert load_threshold(run) == -np.inf
    run.metrics = lambda: {"dev": {"doubt": record}}
    assert load_threshold(run) == record["threshold"]


def test_a_context_is_encoded_once_for_all_its_candidates(selection_predictor, monkeypatch):
    calls = []
    predict = selection_predictor.model.predict_on_batch

    def counting(inputs):
        calls.append((inputs["turns"].shape[0], inputs["responses"].shape[:2]))
        return predict(inputs)

    words = selection_predictor.vocabulary.words
    turns = [" ".join(words[5:9])]
    candidates = [" ".join(words[i : i + 1 + i % 7]) for i in range(3, 40)]
    monkeypatch.setattr(selection_predictor.model, "predict_on_batch", counting)
    [together] = selection_predictor.predict([{"turns": turns, "candidates": candidates}])
    assert calls == [(1, (1, 32)), (1, (1, 5))]
    for candidate, logit in zip(candidates, together["logits"], strict=True):
        [alone] = selection_predictor.predict([{"turns": turns, "candidates": [candidate]}])
        assert alone["logits"] == pytest.approx([logit], abs=1e-4)


def test_raw_texts_are_split_by_the_tokenizer_of_the_run(trained_selection, selection_predictor):
    split = {"turns": ["hello there !"], "candidates": ["what is it , then ?"]}
    raw = {"turns": ["Hello there!"], "candidates": ["What is it, then?"]}
    # The tests' data are split at white space.
    expected = selection_predictor.predict([split])
    assert selection_predictor.predict([raw]) != expected
    dataset = {**trained_selection.dataset, "text": {"tokenizer": "terms", "lower": True}}
    run = Run(trained_selection.path, {**trained_selection.record, "dataset": dataset})
    predictor = TASKS["selection"].predictor(run)
    assert predictor.predict([raw]) == predictor.predict([split]) == expected


# === Chat ===

QUESTION = "what can you tell me about the town ?"


@pytest.fixture
def chat(selection_predictor, selection_index):
    return SelectionChat(AnsweringPredictor(selection_predictor, selection_index))


def test_the_chat_says_the_best_answer_and_remembers_it(chat):
    def best(turns):
        [answer] = chat.predictor.predict([{"turns": turns}])
        return answer["candidates"][0]

    assert list(chat.reply("  ")) == [] and chat.said == []
    [first] = chat.reply(QUESTION)
    assert first == best([QUESTION]) and chat.said == [QUESTION, first]
    assert list(chat.reply("and the market ?")) == [best([QUESTION, first, "and the market ?"])]

    chat.reset()
    assert chat.said == [] and chat.explain() == "Say something first."
    assert list(chat.reply("zork zork")) == [f"[{NOTHING_FOUND}]"]
    assert chat.explain() == "Say something first."


def test_the_chat_explains_its_answer_by_the_best_match_of_each_word(chat):
    list(chat.reply(QUESTION))
    explained = chat.explain().split("\n")
    words = [line.split()[0] for line in explained[:-1]]
    assert words == chat.said[-1].split()[-5:]  # what the model reads
    assert "(turn 1)" in explained[0]


def test_own_answers_are_ranked(trained_selection, selection_predictor, tmp_path):
    file = tmp_path / "answers.txt"
    file.write_text("yes\n\n\u3000\n  no thank you\nthe town is old\n", encoding="utf-8")
    chat = SelectionChat(load_predictor(trained_selection, candidates=read_candidates(file)))
    said, *notes = chat.reply(QUESTION)
    texts = ["yes", "no thank you", "the town is old"]
    [ranked] = selection_predictor.predict([{"turns": [QUESTION], "candidates": texts}])
    assert said == texts[ranked["order"][0]]
    assert notes == ([] if ranked["good"] else [f"[{ranked['reason']}]"])
    chat.predictor.predictor.threshold = max(ranked["logits"]) + 1
    [_, note] = chat.reply(QUESTION)
    assert note == f"[{LOW_SCORES}]"
    file.write_bytes(b"\n \n")
    assert "answers.txt: expected an answer per line" in refusal(read_candidates, file)


def test_script_answers_from_an_index(trained_selection, selection_index, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("what can you tell me ?\n\n/quit\n"))
    done = run_script("chat.py", f"--run={trained_selection.path}", f"--index={selection_index}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    done = run_script("chat.py", f"--run={trained_selection.path}")
    assert done.returncode == 1
    assert "give --index=DIR (tools.build_index) or --candidates=FILE" in done.stderr

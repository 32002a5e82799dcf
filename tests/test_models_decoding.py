"""`models.decoding` against searches in plain loops over calls of a model, over all replies there
are, and by draws.
"""

import functools
import itertools

import keras
import numpy as np
import pytest
from helpers import randomised, to_numpy
from keras import ops

from colloquy.models.decoding import BLOCK, LOWEST, Decoder, Decoding, _top_words, decode
from colloquy.models.seq2seq import Seq2Seq, Seq2SeqConfig
from colloquy.tasks.generation.search import columns

# === Small models, and searches in plain loops over calls of them ===

V, L = 7, 5  # words, words of a reply at most
EOS, UNK = 1, 2
SOURCES = np.array([[3, 4, 5, 6, 1], [5, 1, 0, 0, 0], [4, 7, 1, 0, 0]], "int32")


@functools.cache
def made(vocabulary_size=V, **settings):
    """A model with random weights, shared by the tests: do not change it."""
    config = Seq2SeqConfig(
        vocabulary_size=vocabulary_size, embedding_dim=5, hidden=6, dropout=0.0, **settings
    )
    return randomised(Seq2Seq(config), 3, 1.0)


@functools.cache
def biased(**bias):
    """The same with other logits for some words: `w4=2.0` adds 2 to that of word 4."""
    model = randomised(Seq2Seq(made().config), 3, 1.0)
    kernel, vector = model.get_layer("logits").get_weights()
    for word, value in bias.items():
        vector[int(word[1:])] += value
    model.get_layer("logits").set_weights([kernel, vector])
    return model


def log_p(model, source, targets):
    """Log probabilities of each word of some targets after one source, by teacher forcing: a list
    for each.
    """
    width = max(map(len, targets))
    before = [[model.begin_id, *target[:-1]] + [0] * (width - len(target)) for target in targets]
    source = np.repeat(source[source > 0][None], len(targets), axis=0)
    logits = to_numpy(model({"source": source, "target_in": np.array(before, "int32")})).astype(
        "float64"
    )
    every = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return [every[row, : len(target)] for row, target in enumerate(targets)]


def judged(model, source, targets, d):
    """`log_p` after the source, less `d.against_empty` times that after an empty one."""
    after_source, after_empty = (
        log_p(model, each, targets) for each in (source, np.array([EOS], "int32"))
    )
    return [
        row - d.against_empty * empty for row, empty in zip(after_source, after_empty, strict=True)
    ]


def scored(model, source, targets):
    """The log probability of some targets."""
    by_word = log_p(model, source, targets)
    return [
        row[np.arange(len(target)), target].sum()
        for row, target in zip(by_word, targets, strict=True)
    ]


def may_follow(words, word, d):
    """Whether a word may come after others."""
    if (
        word == 0
        or (word == UNK and not d.allow_unknown)
        or (word == EOS and len(words) < d.min_length)
    ):
        return False
    words, n = [*words, word], d.block_ngrams
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return not n or len(set(grams)) == len(grams)


def beam_in_loops(model, source, d):
    """Beam search, hypothesis by hypothesis: `[(words, ranked by)]`."""
    hypotheses = [([], 0.0)]

    def rank(hypothesis):
        return hypothesis[1] / ((5 + len(hypothesis[0])) / 6) ** d.length_penalty

    for _ in range(d.max_length):
        candidates = [(words, total) for words, total in hypotheses if EOS in words]
        going_on = [(words, total) for words, total in hypotheses if EOS not in words]
        rows = (
            judged(model, source, [[*words, EOS] for words, _ in going_on], d) if going_on else []
        )
        for (words, total), row in zip(going_on, rows, strict=True):
            follow = [
                word
                for word in range(model.config.vocabulary_size + 1)
                if may_follow(words, word, d)
            ]
            candidates += [([*words, word], total + row[-1, word]) for word in follow]
        hypotheses = sorted(candidates, key=rank, reverse=True)[: d.beam]
    return [(words, rank((words, total))) for words, total in hypotheses]


def replies(ids):
    """Lists of words of `(K, L)` ids; nothing may stand after `_EOS_`."""
    found = []
    for row in ids.tolist():
        words = row[: row.index(EOS) + 1] if EOS in row else row
        assert row[len(words) :] == [0] * (len(row) - len(words))
        assert 0 not in words
        found.append(words)
    return found


def run(model, source, d, noise=None):
    inputs = {
        "source": source,
        **columns([d] * len(source)),
        **({} if noise is None else {"noise": noise}),
    }
    ids, scores = (
        to_numpy(x)
        for x in decode(model, inputs, d.beam, d.max_length, EOS, UNK, d.against_empty > 0)
    )
    assert ids.shape == (len(source), d.beam, d.max_length) and scores.shape == ids.shape[:2]
    return ids, scores


# === Search ===


@pytest.mark.parametrize(
    ("settings", "of_model"),
    [
        ({}, {}),  # greedy search
        ({}, {"attention": "luong_dot", "cell": "lstm", "layers": 2}),
        ({}, {"attention": "none"}),
        ({}, {"attention": "dot", "output": "all"}),
        ({"beam": 3}, None),
        ({"beam": 3, "length_penalty": 1.3, "min_length": 2}, None),
        ({"beam": 2, "block_ngrams": 2, "allow_unknown": True}, None),
        ({"beam": 5, "block_ngrams": 1, "length_penalty": 0.4}, None),
        ({"beam": 3, "block_ngrams": 3}, None),
        ({"against_empty": 0.5}, None),
        (
            {"beam": 3, "against_empty": 0.25, "length_penalty": 1.0},
            {"attention": "luong_dot", "layers": 2},
        ),
        # the likeliest words of two in three blocks
        ({"beam": 2, "block_ngrams": 1}, {"vocabulary_size": 150}),
    ],
    ids=str,
)
def test_search_matches_loops(settings, of_model):
    model, d = (
        biased(w1=1.0) if of_model is None else made(**of_model),
        Decoding(max_length=L, **settings),
    )
    ids, scores = run(model, SOURCES, d)
    for source, found, ranked in zip(SOURCES, ids, scores, strict=True):
        expected = beam_in_loops(model, source, d)
        assert replies(found) == [words for words, _ in expected]
        np.testing.assert_allclose(ranked, [score for _, score in expected], atol=1e-4)


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("most", [2, 50, 10**6])  # many equal logits, some, hardly any
def test_the_top_words_are_those_of_a_whole_search(n, most):
    logits = np.random.default_rng(n).integers(-most, most, (4, 2, 5 * BLOCK)).astype("float32")
    logits[0, 0], logits[..., 4 * BLOCK + 3 :] = LOWEST, LOWEST
    for found, expected in zip(
        _top_words(ops.convert_to_tensor(logits), n), ops.top_k(logits, n), strict=True
    ):
        np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))


@pytest.mark.parametrize("sample", [False, True])
def test_one_compiled_decoder_serves_all_settings(sample):
    """Also for different sources of a batch, and without a new trace."""
    model, noise = (
        made(),
        {"noise": np.random.default_rng(0).random((3, 2, L), "float32")} if sample else {},
    )
    decoder = Decoder(model, 2, L, EOS, UNK)
    some = [
        {},
        {"length_penalty": 2.0, "min_length": 3},
        {"block_ngrams": 2, "allow_unknown": True},
    ]
    drawn = [{"temperature": 3.0, "block_ngrams": 1}, {"top_k": 2, "top_p": 0.4}]
    others = [{"max_length": 2}, *(drawn if sample else [{"block_ngrams": 1}, {"min_length": 2}])]
    for settings in (some, others):
        each = [
            Decoding(beam=2, sample=sample, **{"max_length": L, **changes}) for changes in settings
        ]
        ids, scores = decoder.predict_on_batch({"source": SOURCES, **columns(each), **noise})
        for row, d in enumerate(each):
            given = noise["noise"][row : row + 1, :, : d.max_length] if sample else None
            expected, ranked = run(model, SOURCES[row : row + 1], d, given)
            np.testing.assert_array_equal(ids[row, :, : d.max_length], expected[0])
            assert not ids[row, :, d.max_length :].any()
            np.testing.assert_allclose(scores[row], ranked[0], atol=1e-5)
    if keras.config.backend() == "tensorflow":
        assert decoder.predict_function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "settings",
    [
        *({"length_penalty": value} for value in (float("nan"), -1.0, 1e9)),
        # the last without `sample`, as the next two
        *({"temperature": value} for value in (0.0, 1e-320, 1e30, 0.9)),
        *({"top_p": value} for value in (1e-320, 1.1, 0.9)),
        *(
            {"block_ngrams": 11},
            {"beam": 0},
            {"top_k": -1},
            {"top_k": 2},
            {"max_length": 5, "min_length": 5},
        ),
    ],
    ids=str,
)
def test_absurd_settings_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Decoding(**settings)


def test_an_empty_source_is_read_once(monkeypatch):
    model, read = made(), []
    encode = Seq2Seq.encode
    monkeypatch.setattr(
        Seq2Seq, "encode", lambda self, source: read.append(source) or encode(self, source)
    )
    run(model, SOURCES, Decoding(max_length=L, against_empty=0.5))
    assert [tuple(source.shape) for source in read] == [SOURCES.shape, (1, 1)]


# === What replies may hold ===


@pytest.mark.parametrize(
    "settings", [{}, {"block_ngrams": 1}, {"block_ngrams": 2, "min_length": 3}]
)
def test_drawing_among_one_word_is_greedy_search(settings):
    """Of a model that says one word over and over: the first time that it may not, it says another
    one.
    """
    model, n = biased(w4=12.0), settings.get("block_ngrams", L)
    greedy, drawn = (
        Decoding(max_length=L, **settings),
        Decoding(beam=2, sample=True, top_k=1, max_length=L, **settings),
    )
    ids, scores = run(model, SOURCES, greedy)
    assert all(words[:n] == [4] * n for words in replies(ids[:, 0]))
    found, ranked = run(
        model, SOURCES, drawn, np.random.default_rng(0).random((3, 2, L), "float32")
    )
    for k in range(2):
        np.testing.assert_array_equal(found[:, k], ids[:, 0])
        np.testing.assert_allclose(ranked[:, k], scores[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"beam": 7, "max_length": 1}, {(EOS,), (3,), (4,), (5,)}),
        ({"max_length": 7, "min_length": 6, "block_ngrams": 1}, None),
        ({"beam": 7, "max_length": 5, "min_length": 4, "block_ngrams": 1}, None),
    ],
    ids=str,
)
def test_where_replies_run_out_there_are_fewer(settings, expected):
    """Not some that hold padding, unknown words or others twice; and one that may not go on
    ends.
    """
    model, source = made(5), np.array([[3, 5, 4, 1]], "int32")
    ids, scores = run(model, source, Decoding(**settings))
    found = [tuple(words) for words in replies(ids[0][scores[0] > LOWEST])]
    assert not ids[0][scores[0] <= LOWEST].any()
    expected = expected or {(*words, EOS) for words in itertools.permutations((3, 4, 5))}
    assert (
        len(set(found)) == len(found) == min(len(expected), settings.get("beam", 1))
        and set(found) <= expected
    )
    np.testing.assert_allclose(scores[0][: len(found)], scored(model, source[0], found), atol=1e-4)


# === Sampling ===

DRAWS = 2003


def drawn(model, source, **settings):
    """How often each word comes first; the noise passes through [0, 1) in even steps."""
    d = Decoding(beam=DRAWS, sample=True, max_length=1, **settings)
    noise = ((np.random.default_rng(0).permutation(DRAWS) + 0.5) / DRAWS).astype("float32")
    ids, _ = run(model, source[None], d, noise[None, :, None])
    return np.bincount(ids[0, :, 0], minlength=V + 1) / DRAWS


def probabilities_in_loops(logits, temperature=1.0, top_k=0, top_p=1.0, min_length=0):
    words = sorted(
        (w for w in range(1, V + 1) if w != UNK and (w != EOS or not min_length)),
        key=lambda w: -logits[w],
    )
    words = words[:top_k] if top_k else words
    total = sum(np.exp(logits[w] / temperature) for w in words)
    p, kept, so_far = np.zeros(V + 1), [], 0.0
    for w in words:
        if so_far >= top_p:
            break
        kept.append(w)
        p[w] = np.exp(logits[w] / temperature) / total
        so_far += p[w]
    return p / p.sum(), kept


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, 6),
        ({"temperature": 0.5}, 6),
        ({"top_k": 3}, 3),
        ({"top_k": 5, "top_p": 0.9, "temperature": 2.0}, 4),
        ({"top_p": 1e-6}, 1),
    ],
    ids=str,
)
def test_words_are_drawn_by_their_probability(settings, words):
    model, source = made(), SOURCES[0]
    [row] = log_p(model, source, [[EOS]])
    expected, kept = probabilities_in_loops(row[0], **settings)
    assert len(kept) == words
    np.testing.assert_allclose(drawn(model, source, **settings), expected, atol=2 / DRAWS)


def test_the_same_noise_draws_the_same_replies_whatever_their_neighbours():
    model, d = made(), Decoding(beam=5, sample=True, max_length=L, temperature=1.5)
    noise, other = np.random.default_rng(0).random((2, 3, 5, L), "float32")
    ids, scores = run(model, SOURCES, d, noise)
    again, _ = run(model, SOURCES, d, noise)
    np.testing.assert_array_equal(again, ids)
    alone, _ = run(model, SOURCES[1:2, :2], d, noise[1:2])
    np.testing.assert_array_equal(alone[0], ids[1])
    assert (run(model, SOURCES, d, other)[0] != ids).any()
    for source, found, ranked in zip(SOURCES, ids, scores, strict=True):
        assert len(set(map(tuple, replies(found)))) > 2
        assert (np.diff(ranked) <= 0).all()
        # Ranked by the model's own probability, whatever the temperature.
        np.testing.assert_allclose(ranked, scored(model, source, replies(found)), atol=1e-4)


class EveryWordAlike:
    """A model by which all of its words have the same probability."""

    begin_id, words = 2004, 2003

    def encode(self, source):
        return [keras.ops.zeros((keras.ops.shape(source)[0], 1))], []

    def step(self, words, states, cache):
        return (
            keras.ops.zeros((keras.ops.shape(words)[0], self.words + 1), "bfloat16"),
            states,
            None,
        )


def test_every_word_can_be_drawn_in_half_precision():
    """Cast to bfloat16, the noise would have a few hundred values, and meet float32 probabilities
    besides.
    """
    keras.config.set_dtype_policy("mixed_bfloat16")
    model, d = EveryWordAlike(), Decoding(beam=2003, sample=True, max_length=1, allow_unknown=True)
    noise = ((np.arange(2003) + 0.5) / 2003).astype("float32")[None, :, None]
    decoder = Decoder(model, 2003, 1, EOS, UNK)
    ids, _ = decoder.predict_on_batch({"source": SOURCES[:1], **columns([d]), "noise": noise})
    assert len(np.unique(ids)) == 2003

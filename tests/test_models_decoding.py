"""`models.decoding` against searches in plain loops, over all replies there are, and by draws."""

import functools
import itertools

import keras
import numpy as np
import pytest
from helpers import randomised, to_numpy
from keras import ops

from colloquy.layers.masking import LOWEST
from colloquy.layers.top_words import BLOCK, top_words
from colloquy.models.decoding import Decoder, Decoding, decode, put_new_replies_first
from colloquy.models.seq2seq import Seq2Seq, Seq2SeqConfig
from colloquy.tasks.generation.search import decoding_inputs

# === Small models, and searches in plain loops over calls of them ===

V = 7
L = 5  # words of a reply at most
EOS = 1
UNK = 2
SOURCES = np.array([[3, 4, 5, 6, 1], [5, 1, 0, 0, 0], [4, 7, 1, 0, 0]], "int32")


@functools.cache
def random_model(vocabulary_size=V, **settings):
    """A model with random weights, shared by the tests: do not change it."""
    config = Seq2SeqConfig(
        vocabulary_size=vocabulary_size, embedding_dim=5, hidden=6, dropout=0.0, **settings
    )
    return randomised(Seq2Seq(config), 3, 1.0)


@functools.cache
def biased(**bias):
    """The same with other logits for some words: `w4=2.0` adds 2 to that of word 4."""
    model = randomised(Seq2Seq(random_model().config), 3, 1.0)
    kernel, vector = model.get_layer("logits").get_weights()
    for word, value in bias.items():
        vector[int(word[1:])] += value
    model.get_layer("logits").set_weights([kernel, vector])
    return model


def log_p(model, source, targets):
    """Log probabilities of all words at each word of some targets, by teacher forcing."""
    width = max(len(target) for target in targets)
    target_in = np.zeros((len(targets), width), "int32")
    for row, target in enumerate(targets):
        target_in[row, : len(target)] = [model.begin_id, *target[:-1]]
    sources = np.repeat(source[source > 0][None], len(targets), axis=0)
    logits = to_numpy(model({"source": sources, "target_in": target_in})).astype("float64")
    all_log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return [row[: len(target)] for row, target in zip(all_log_p, targets, strict=True)]


def word_scores(model, source, targets, decoding):
    """`log_p` after the source, less `anti_lm_weight` times that after an empty one."""
    empty_source = np.array([EOS], "int32")
    scores = []
    for after_source, after_empty in zip(
        log_p(model, source, targets), log_p(model, empty_source, targets), strict=True
    ):
        scores.append(after_source - decoding.anti_lm_weight * after_empty)
    return scores


def log_p_of_targets(model, source, targets):
    sums = []
    for row, target in zip(log_p(model, source, targets), targets, strict=True):
        sums.append(row[np.arange(len(target)), target].sum())
    return sums


def may_follow(words, word, decoding):
    """Whether a word may come after others."""
    if word == 0:
        return False
    if word == UNK:
        return False
    if word == EOS and len(words) < decoding.min_length:
        return False
    n = decoding.block_ngrams
    if not n:
        return True
    words = [*words, word]
    ngrams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return len(set(ngrams)) == len(ngrams)


def beam_in_loops(model, source, decoding):
    """Beam search, hypothesis by hypothesis: `[(words, ranked by)]`."""

    def rank(hypothesis):
        words, score = hypothesis
        return score / ((5 + len(words)) / 6) ** decoding.length_penalty

    hypotheses = [([], 0.0)]
    for _ in range(decoding.max_length):
        candidates = [hypothesis for hypothesis in hypotheses if EOS in hypothesis[0]]
        open_hypotheses = [hypothesis for hypothesis in hypotheses if EOS not in hypothesis[0]]
        if not open_hypotheses:
            break
        targets = [[*words, EOS] for words, _ in open_hypotheses]
        all_scores = word_scores(model, source, targets, decoding)
        for (words, score), row in zip(open_hypotheses, all_scores, strict=True):
            for word in range(model.config.vocabulary_size + 1):
                if may_follow(words, word, decoding):
                    candidates.append(([*words, word], score + row[-1, word]))
        hypotheses = sorted(candidates, key=rank, reverse=True)[: decoding.beam]
    return [(words, rank((words, score))) for words, score in hypotheses]


def replies(ids):
    """The words of `(K, L)` ids; after `_EOS_` there is only padding."""
    all_words = []
    for row in ids.tolist():
        words = row[: row.index(EOS) + 1] if EOS in row else row
        assert row[len(words) :] == [0] * (len(row) - len(words))
        assert 0 not in words
        all_words.append(words)
    return all_words


def run(model, source, decoding, noise=None):
    inputs = {"source": source, **decoding_inputs([decoding] * len(source))}
    if noise is not None:
        inputs["noise"] = noise
    inputs = {name: ops.convert_to_tensor(array) for name, array in inputs.items()}
    num_beams = decoding.beam
    reply_length = decoding.max_length
    ids, scores = decode(
        model, inputs, num_beams, reply_length, EOS, UNK, anti_lm=decoding.anti_lm_weight > 0
    )
    assert ids.shape == (len(source), num_beams, reply_length)
    assert scores.shape == (len(source), num_beams)
    return to_numpy(ids), to_numpy(scores)


def draw_noise(*shape):
    return np.random.default_rng(0).random(shape, "float32")


# === Search ===


slow = functools.partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("settings", "model_settings"),
    [
        ({"beam": 3, "length_penalty": 1.3, "min_length": 2}, None),
        ({"beam": 2, "block_ngrams": 2, "anti_lm_weight": 0.25}, None),
        slow({}, {}),  # greedy search
        slow({}, {"attention": "luong_dot", "cell": "lstm", "layers": 2}),
        slow({}, {"attention": "dot", "output": "all"}),
        slow({"beam": 5, "block_ngrams": 1, "length_penalty": 0.4}, None),
        slow(
            {"beam": 3, "anti_lm_weight": 0.25, "length_penalty": 1.0},
            {"attention": "luong_dot", "layers": 2},
        ),
        # The likeliest words of two are in three blocks.
        slow({"beam": 2, "block_ngrams": 1}, {"vocabulary_size": 150}),
    ],
    ids=str,
)
def test_search_matches_loops(settings, model_settings):
    decoding = Decoding(max_length=L, **settings)
    if model_settings is None:
        model = biased(w1=1.0)
    else:
        model = random_model(**model_settings)
    sources = SOURCES[:2]
    ids, scores = run(model, sources, decoding)
    for row, source in enumerate(sources):
        expected = beam_in_loops(model, source, decoding)
        assert replies(ids[row]) == [words for words, _ in expected]
        np.testing.assert_allclose(scores[row], [score for _, score in expected], atol=1e-4)


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("largest", [2, 50, 10**6])  # many equal logits, some, hardly any
def test_the_top_words_are_those_of_a_whole_search(n, largest):
    rng = np.random.default_rng(n)
    logits = rng.integers(-largest, largest, (4, 2, 5 * BLOCK)).astype("float32")
    logits[0, 0] = LOWEST
    logits[..., 4 * BLOCK + 3 :] = LOWEST
    likely, words = top_words(ops.convert_to_tensor(logits), n)
    expected_likely, expected_words = ops.top_k(logits, n)
    np.testing.assert_array_equal(to_numpy(likely), to_numpy(expected_likely))
    np.testing.assert_array_equal(to_numpy(words), to_numpy(expected_words))


def test_top_words_are_words_where_few_are_allowed():
    """PyTorch chooses any of equal logits."""
    logits = np.full((1, 1, BLOCK + 3), LOWEST, "float32")
    logits[..., 5] = 1.0
    _, words = top_words(ops.convert_to_tensor(logits), 4)
    assert to_numpy(words).max() < BLOCK + 3


SEARCHES = [
    {"length_penalty": 2.0, "min_length": 3},
    {"block_ngrams": 2},
    {"max_length": 2},
    {"min_length": 2},
]
DRAWS_OF_WORDS = [{"temperature": 3.0, "block_ngrams": 1}, {"top_p": 0.4}]


@pytest.mark.parametrize("sample", [slow(False), True])
def test_one_compiled_decoder_serves_all_settings(sample):
    """It does so for different sources of a batch, without a new trace."""
    model = random_model()
    decoder = Decoder(model, 2, L, EOS, UNK)
    settings = [*SEARCHES, *(DRAWS_OF_WORDS if sample else [{}, {}])]
    for batch in (settings[:3], settings[3:]):
        decodings = []
        for changes in batch:
            decodings.append(Decoding(beam=2, sample=sample, **{"max_length": L, **changes}))
        inputs = {"source": SOURCES, **decoding_inputs(decodings)}
        if sample:
            inputs["noise"] = draw_noise(3, 2, L)
        ids, scores = decoder.predict_on_batch(inputs)
        for row, decoding in enumerate(decodings):
            length = decoding.max_length
            noise = inputs["noise"][row : row + 1, :, :length] if sample else None
            expected_ids, expected_scores = run(model, SOURCES[row : row + 1], decoding, noise)
            np.testing.assert_array_equal(ids[row, :, :length], expected_ids[0])
            assert not ids[row, :, length:].any()
            np.testing.assert_allclose(scores[row], expected_scores[0], atol=1e-5)
    if keras.config.backend() == "tensorflow":
        assert decoder.predict_function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"length_penalty": float("nan")},
        {"length_penalty": -1.0},
        {"temperature": 0.0},
        {"temperature": 1e30},
        {"temperature": 0.9},  # without `sample`, as the next two
        {"top_p": 0.9},
        {"top_p": 1e-320},
        {"block_ngrams": 11},
        {"beam": 0},
        {"beam": 10**6},
        {"max_length": 10**6},
        {"max_length": 5, "min_length": 5},
    ],
    ids=str,
)
def test_absurd_settings_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Decoding(**settings)


# === Words of replies ===


ALL_ORDERS = {(*words, EOS) for words in itertools.permutations((3, 4, 5))}


@pytest.mark.parametrize(
    ("settings", "possible"),
    [
        ({"beam": 7, "max_length": 1}, {(EOS,), (3,), (4,), (5,)}),
        ({"max_length": 7, "min_length": 6, "block_ngrams": 1}, ALL_ORDERS),
        ({"beam": 7, "max_length": 5, "min_length": 4, "block_ngrams": 1}, ALL_ORDERS),
    ],
    ids=["one word", "greedy", "beam"],
)
def test_where_replies_run_out_there_are_fewer(settings, possible):
    """There is no padding, no unknown word, nothing twice; a reply that may not continue ends."""
    model = random_model(5)
    source = np.array([[3, 5, 4, 1]], "int32")
    [ids], [scores] = run(model, source, Decoding(**settings))
    is_reply = scores > LOWEST
    assert not ids[~is_reply].any()
    words = [tuple(reply) for reply in replies(ids[is_reply])]
    assert len(words) == min(len(possible), settings.get("beam", 1))
    assert len(set(words)) == len(words)
    assert set(words) <= possible
    expected = log_p_of_targets(model, source[0], words)
    np.testing.assert_allclose(scores[is_reply], expected, atol=1e-4)


# === Sampling ===

DRAWS = 2003


def draw_frequencies(model, source, **settings):
    """How often each word comes first; the noise passes through [0, 1) in even steps."""
    decoding = Decoding(sample=True, max_length=1, **settings)
    noise = (np.random.default_rng(0).permutation(DRAWS) + 0.5) / DRAWS
    sources = np.repeat(source[None], DRAWS, axis=0)
    ids, _ = run(model, sources, decoding, noise.astype("float32")[:, None, None])
    return np.bincount(ids[:, 0, 0], minlength=V + 1) / DRAWS


def probabilities_in_loops(logits, temperature=1.0, top_p=1.0):
    """The probability of each word, and the number of words that are left."""
    words = [word for word in range(1, V + 1) if word != UNK]
    words.sort(key=lambda word: -logits[word])
    total = sum(np.exp(logits[word] / temperature) for word in words)
    p = np.zeros(V + 1)
    for count, word in enumerate(words):
        if p.sum() >= top_p:
            return p / p.sum(), count
        p[word] = np.exp(logits[word] / temperature) / total
    return p / p.sum(), len(words)


@pytest.mark.parametrize(
    ("settings", "words_left"),
    [
        ({"temperature": 0.5}, 6),
        ({"top_p": 0.9, "temperature": 2.0}, 5),
        ({"top_p": 1e-6}, 1),
    ],
    ids=str,
)
def test_words_are_drawn_by_their_probability(settings, words_left):
    model = random_model()
    [row] = log_p(model, SOURCES[0], [[EOS]])
    expected, count = probabilities_in_loops(row[0], **settings)
    assert count == words_left
    frequencies = draw_frequencies(model, SOURCES[0], **settings)
    np.testing.assert_allclose(frequencies, expected, atol=2 / DRAWS)


def test_the_same_noise_draws_the_same_replies_whatever_their_neighbours():
    model = random_model()
    decoding = Decoding(beam=5, sample=True, max_length=L, temperature=1.5)
    noise, other_noise = draw_noise(2, 3, 5, L)
    ids, scores = run(model, SOURCES, decoding, noise)
    again, _ = run(model, SOURCES, decoding, noise)
    alone, _ = run(model, SOURCES[1:2, :2], decoding, noise[1:2])
    other, _ = run(model, SOURCES, decoding, other_noise)
    np.testing.assert_array_equal(again, ids)
    np.testing.assert_array_equal(alone[0], ids[1])
    assert (other != ids).any()
    for row, source in enumerate(SOURCES):
        words = replies(ids[row])
        assert len({tuple(reply) for reply in words}) > 2
        assert (np.diff(scores[row]) <= 0).all()
        # Ranked by the model's own probability, whatever the temperature.
        expected = log_p_of_targets(model, source, words)
        np.testing.assert_allclose(scores[row], expected, atol=1e-4)


class EveryWordAlike:
    """A model by which all of its words have the same probability."""

    begin_id = 2004
    words = 2003

    def encode(self, source):
        return [ops.zeros((ops.shape(source)[0], 1))], []

    def step(self, words, states, cache):
        return ops.zeros((ops.shape(words)[0], self.words + 1), "bfloat16"), states, None


def test_every_word_can_be_drawn_in_half_precision():
    """Cast to bfloat16, the noise would have only a few hundred values."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    decoding = Decoding(sample=True, max_length=1)
    noise = ((np.arange(2002) + 0.5) / 2002).astype("float32")[:, None, None]
    decoder = Decoder(EveryWordAlike(), 1, 1, EOS, UNK)
    sources = np.repeat(SOURCES[:1], 2002, axis=0)
    inputs = {"source": sources, **decoding_inputs([decoding] * 2002), "noise": noise}
    ids, _ = decoder.predict_on_batch(inputs)
    assert len(np.unique(ids)) == 2002  # all but `_UNK_`


def test_replies_that_were_given_come_behind_the_others():
    ids = np.array([[[5, EOS, 0], [6, 7, EOS], [0, 0, 0]], [[5, EOS, 0], [7, EOS, 0], [6, 7, EOS]]])
    scores = np.array([[-1.0, -2.0, LOWEST], [-1.0, -2.0, -3.0]], "float32")
    said = np.array([[[5, EOS, 0], [0, 0, 0]], [[5, EOS, 0], [7, EOS, 0]]])
    new_ids, new_scores = put_new_replies_first(ids, scores, said)
    assert ops.convert_to_numpy(new_ids)[:, :, 0].tolist() == [[6, 5, 0], [6, 5, 7]]
    assert ops.convert_to_numpy(new_scores).tolist()[1] == [-3.0, -1.0, -2.0]
    kept, _ = put_new_replies_first(ids, scores, said[:, :0])
    np.testing.assert_array_equal(ops.convert_to_numpy(kept), ids)

"""Every layer keeps Keras's contract and ignores padding; equations are in other files."""

import functools
import json

import keras
import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import CASES, CASES_ONE_FAST, B, D, J, S, T, V, call, floats, outputs_of, real

from colloquy import layers
from colloquy.layers.attention import Attention
from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.attentive_module import AttentiveModule
from colloquy.layers.bag_of_words import BagOfWords
from colloquy.layers.bilstm import BiLSTM
from colloquy.layers.char_cnn import CharacterCNN, Highway
from colloquy.layers.cross_match import CrossMatch
from colloquy.layers.layer_norm import LayerNorm
from colloquy.layers.match_aggregation import MatchAggregation
from colloquy.layers.memory_attention import MemoryAttention
from colloquy.layers.ordered_words import OrderedWords
from colloquy.layers.positions import PositionalEncoding
from colloquy.layers.recurrent_decoder import RecurrentDecoder
from colloquy.layers.recurrent_encoder import RecurrentEncoder
from colloquy.layers.self_attention import SelfAttention
from colloquy.layers.shortcut import Shortcut
from colloquy.layers.word_embedding import WordEmbedding

PADDED = [name for name, each in CASES.items() if each.pads]


@functools.cache
def shared(name, policy="float32"):
    """The layer of a case, which no test changes, and its outputs."""
    layer = CASES[name].build(dtype=policy)
    return layer, keras.tree.flatten(call(layer, CASES[name].inputs))


def as_json(config):
    return json.loads(json.dumps(config))


def symbol_of(array):
    return keras.Input(batch_shape=array.shape, dtype=str(array.dtype))


def model_with(layer, inputs):
    """A functional model that computes a layer's outputs and, of their mean, a number."""
    arrays = {name: x for name, x in inputs.items() if not isinstance(x, int)}
    symbols = keras.tree.map_structure(symbol_of, arrays)
    outputs = keras.tree.flatten(call(layer, {**inputs, **symbols}))
    means = [keras.ops.mean(keras.ops.cast(y, "float32")) for y in outputs]
    number = keras.layers.Dense(1)(keras.ops.reshape(sum(means), (1, 1)))
    model = keras.Model(keras.tree.flatten(symbols), [*outputs, number])
    return model, keras.tree.flatten(arrays)


def fit_once(model, arrays):
    """Fits the model's number; returns the loss."""
    number = keras.Model(model.inputs, model.outputs[-1])
    number.compile("sgd", "mse", run_eagerly=True, jit_compile=False)
    batches = (batch for batch in [(tuple(arrays), np.ones((1, 1), "float32"))])
    [loss] = number.fit(batches, steps_per_epoch=1, shuffle=False, verbose=0).history["loss"]
    return loss


LONG = {
    "BiLSTM",
    "CharacterCNN",
    "CrossMatch",
    "DialogState",
    "DynamicBiLSTM",
    "RecurrentEncoder gru concat",
    "SelfAttention",
    "SentenceGRU",
}
"""Layers that take seconds to save, load and fit."""
CASES_OF_A_USER = []
for case in CASES_ONE_FAST:
    [name] = case.values
    slow_case = pytest.param(name, marks=pytest.mark.slow)
    CASES_OF_A_USER.append(slow_case if name in LONG else case)


@pytest.mark.parametrize("name", CASES_OF_A_USER)
def test_works_in_a_model_of_a_user(name, tmp_path):
    """A functional model is saved and loaded, cloned and fitted; its symbols are as its outputs."""
    policy = "mixed_bfloat16"
    layer, outputs = shared(name, policy)
    model, arrays = model_with(layer, CASES[name].inputs)
    for symbol, output in zip(model.outputs[:-1], outputs, strict=True):
        assert tuple(symbol.shape) == tuple(output.shape)
        # On PyTorch, Keras 3.15 does not cast variables for symbols, in its own layers neither.
        if keras.config.backend() != "torch":
            assert str(symbol.dtype) == keras.backend.standardize_dtype(output.dtype)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for again in (loaded, clone):
        [same] = [part for part in again.layers if type(part) is type(layer)][:1]
        assert as_json(same.get_config()) == as_json(layer.get_config())
        assert [part.dtype_policy.name for part in same._flatten_layers()] == [
            part.dtype_policy.name for part in layer._flatten_layers()
        ]
        for found, expected in zip(again(arrays)[:-1], outputs, strict=True):
            np.testing.assert_array_equal(to_numpy(found), to_numpy(expected))

    assert np.isfinite(fit_once(clone, arrays))


WORDS = np.array([[3, 1, 2], [2, 0, 0]], "int32")


@pytest.mark.parametrize(
    "parts",
    [
        lambda: [BiLSTM(D)],
        lambda: [Highway(), PositionalEncoding(J), SelfAttention(), BiLSTM(D), LayerNorm()],
    ],
)
def test_a_sequential_model_passes_the_mask_of_its_words(parts):
    """What follows a word embedding takes its mask, and what is padded changes nothing."""
    model = keras.Sequential([WordEmbedding(V, D, mask_zero=True), *parts()])
    words, padded = model(WORDS[:1]), model(np.pad(WORDS[:1], [(0, 0), (0, 2)]))
    np.testing.assert_allclose(to_numpy(padded)[:, :3], to_numpy(words), atol=1e-6)
    mask = keras.src.backend.get_keras_mask(model(WORDS))
    np.testing.assert_array_equal(to_numpy(mask), WORDS != 0)


@pytest.mark.parametrize(
    "name", ["BiLSTM", "CharacterCNN", "Highway", "SelfAttention", "SentenceGRU"]
)
def test_is_applied_to_each_text_of_several(name):
    """In a functional model, where `TimeDistributed` asks a layer for its shape."""
    layer = CASES[name].make()
    x, *_ = CASES[name].inputs.values()
    texts = keras.Input((T, *x.shape[1:]), dtype=str(x.dtype))
    outputs = keras.layers.TimeDistributed(layer)(texts)
    assert outputs.shape == (None, T, *layer(x).shape[1:])


@pytest.mark.parametrize(
    "name",
    ["BagOfWords, none", "CharacterCNN", "OrderedWords, position", "SentenceGRU", "WordEmbedding"],
)
def test_a_sequential_model_takes_ids(name):
    """`Sequential` casts ids to floats; floats with 16 bits are refused, since they round ids."""
    layer = CASES[name].make()
    np.testing.assert_array_equal(
        to_numpy(keras.Sequential([layer])(WORDS)), to_numpy(layer(WORDS))
    )
    half = CASES[name].make(dtype="mixed_bfloat16")
    with pytest.raises(ValueError, match="a Sequential model of ids begins with"):
        keras.Sequential([half])(WORDS)
    with_input = keras.Sequential([keras.Input(WORDS.shape[1:], dtype="int32"), half])
    np.testing.assert_array_equal(to_numpy(with_input(WORDS)), to_numpy(half(WORDS)))


PASSES_ON = {
    "Attention dot": "query",
    "AttentionFlow": "context",
    "AttentiveModule": "query",
    "CrossMatch": None,
    "DynamicBiLSTM": "context",
    "MemoryAttention, plain": "query",
    "RecurrentDecoder luong_dot": "y",
    "Shortcut gated": "output",
    "SpeakerFeature": "x",
}
"""Layers of several texts, and the argument whose mask the output gets."""


def with_mask(array, mask):
    tensor = keras.ops.convert_to_tensor(array)
    keras.src.backend.set_keras_mask(tensor, keras.ops.convert_to_tensor(mask))
    return tensor


@pytest.mark.parametrize("name", PASSES_ON)
def test_takes_and_passes_on_the_masks_that_its_inputs_carry(name):
    """As those that are passed. Without any, every word is real."""
    layer = CASES[name].build()
    inputs = dict(CASES[name].inputs)
    masks = {argument: inputs.pop(argument) for argument in [*inputs] if "_mask" in argument}
    all_real = {argument: np.ones_like(mask) for argument, mask in masks.items()}

    def output(**more):
        return to_numpy(keras.tree.flatten(layer(**{**inputs, **more}))[0])

    np.testing.assert_allclose(output(), output(**all_real), atol=1e-6)
    marked = {}
    for argument, mask in masks.items():
        text = argument.removesuffix("_mask")
        marked[text] = with_mask(inputs[text], mask)
    np.testing.assert_allclose(output(**marked), output(**masks), atol=1e-6)

    argument = PASSES_ON[name]
    if argument is None:
        return
    mask = real(*inputs[argument].shape[:-1])
    marked[argument] = with_mask(inputs[argument], mask)
    passed = keras.src.backend.get_keras_mask(keras.tree.flatten(layer(**{**inputs, **marked}))[0])
    np.testing.assert_array_equal(to_numpy(passed), mask)


def test_defaults_are_what_the_equations_suggest():
    """A sentence attends to itself, scores are products, a decoder begins with zeros."""
    layer = CASES["AttentiveModule"].build()
    x, mask = floats(B, S, D), real(B, S)
    own = to_numpy(layer(with_mask(x, mask)))
    np.testing.assert_allclose(own, to_numpy(layer(x, x, x, mask, mask)), atol=1e-6)
    np.testing.assert_allclose(to_numpy(layer(x)), to_numpy(layer(x, x, x)), atol=1e-6)

    layer, inputs = CASES["CrossMatch"].build(), dict(CASES["CrossMatch"].inputs)
    expected = to_numpy(layer(**inputs))
    del inputs["scores"]
    np.testing.assert_allclose(to_numpy(layer(**inputs)), expected, atol=1e-5)

    layer, inputs = (
        CASES["RecurrentDecoder dot"].build(),
        dict(CASES["RecurrentDecoder dot"].inputs),
    )
    zeros = [np.zeros_like(state) for state in inputs.pop("states")]
    np.testing.assert_array_equal(
        to_numpy(layer(**inputs)), to_numpy(layer(**inputs, states=zeros))
    )


LEFT = np.array([0, 0, 1, 1, 1, 1, 1], bool)
"""Padding before a text, as `keras.utils.pad_sequences` puts it."""
HOLES = np.array([1, 0, 1, 0, 1, 1, 0], bool)

TEXTS_OF_MASK = {
    "mask": ["x"],
    "key_mask": ["key", "value"],
    "memory_mask": ["memory", "distances"],
}
"""Arguments that a mask is of; others are named `TEXT_mask`."""


def masked_texts():
    """`(name of a case, mask, training)` of each mask of words, with and without training.

    The release's masking is what it was. Most layers do the same in training, apart from dropout:
    there only the BiLSTM is fast. The DynamicBiLSTM takes seconds.
    """
    found = []
    for name, case in CASES.items():
        for argument in case.inputs:
            is_of_words = argument.endswith("mask") and argument != "cell_mask"
            if not is_of_words or "release" in name:
                continue
            for training in (False, True):
                is_slow = name == "DynamicBiLSTM" or (training and name != "BiLSTM")
                marks = [pytest.mark.slow] if is_slow else []
                found.append(pytest.param(name, argument, training, marks=marks))
    return found


@pytest.mark.parametrize(("name", "mask_name", "training"), masked_texts())
def test_padding_may_be_anywhere(name, mask_name, training):
    """The result is that of a text without padding, also where a layer has a fast path."""
    layer, inputs = CASES[name].build(), dict(CASES[name].inputs)
    inputs.pop("scores", None)  # of all words; CrossMatch computes them itself
    for part in layer._flatten_layers():
        if isinstance(part, keras.layers.Dropout):
            part.rate = 0.0
    shape = inputs[mask_name].shape
    for pattern in (LEFT, HOLES):
        is_real = pattern[: shape[-1]]
        without_padding = dict(inputs)
        for text in TEXTS_OF_MASK.get(mask_name, [mask_name.removesuffix("_mask")]):
            if text in inputs:
                without_padding[text] = np.compress(is_real, inputs[text], axis=-2)
        without_padding[mask_name] = np.ones((*shape[:-1], is_real.sum()), bool)
        padded = {**inputs, mask_name: np.broadcast_to(is_real, shape)}

        found = keras.tree.flatten(layer(**padded, training=training))
        expected = keras.tree.flatten(layer(**without_padding, training=training))
        for some, others in zip(map(to_numpy, found), map(to_numpy, expected), strict=True):
            for axis, size in enumerate(others.shape):
                if some.shape[axis] != size:
                    some = np.compress(is_real, some, axis)
            np.testing.assert_allclose(some, others, atol=1e-5)


def test_every_layer_is_imported_by_its_name():
    for name, case in CASES.items():
        layer = type(case.make())
        assert getattr(layers, layer.__name__) is layer, name
    with pytest.raises(ImportError, match="cannot import name 'Transformer'"):
        from colloquy.layers import Transformer  # noqa: F401


@pytest.mark.parametrize("name", CASES_ONE_FAST)
def test_half_precision_is_near_float32(name):
    exact, expected = shared(name)
    for policy in ("mixed_float16", "mixed_bfloat16"):
        layer, outputs = shared(name, policy)
        for weight, wanted in zip(layer.weights, exact.weights, strict=True):
            np.testing.assert_array_equal(to_numpy(weight), to_numpy(wanted))
            assert str(weight.dtype) in ("float32", "int32", "uint32")
        for found, wanted in zip(map(to_numpy, outputs), map(to_numpy, expected), strict=True):
            assert np.abs(found - 1.0 * wanted).max() <= 0.08 * max(np.abs(wanted).max(), 1.0)


@pytest.mark.parametrize("garbage", [pytest.param(0.0, marks=pytest.mark.slow), -40.0])
@pytest.mark.parametrize("name", PADDED)
def test_ignores_padding(name, garbage):
    """More of it, filled with anything, changes no output that counts; what it adds is beside
    them.
    """
    (layer, outputs), counts = shared(name), CASES[name].inputs.get(CASES[name].counts)
    for found, expected in zip(
        outputs_of(layer, CASES[name].padded(garbage)), map(to_numpy, outputs), strict=True
    ):
        found = found[tuple(slice(n) for n in expected.shape)]
        if counts is not None:
            found, expected = found[counts], expected[counts]
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert np.ptp(expected) > 0.01  # which says something


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Attention("cosine"), "score='cosine'"),
        (lambda: Attention("dot").build((B, T, J), (B, S, D)), "one size. Received: 7 and 11"),
        (lambda: AttentionFlow(start="ones"), "start='ones'"),
        (lambda: AttentionFlow(kind="no"), "kind='no'"),
        (lambda: AttentionFlow(fusion="no"), "fusion='no'"),
        (lambda: AttentiveModule("padding"), "masking='padding'"),
        (lambda: BagOfWords(V, D, positions="halves"), "'halves' needs max_words. Received: 0"),
        (lambda: CharacterCNN(V)(keras.Input((T, J), dtype="int32")), "ndim=2, found ndim=3"),
        (lambda: CrossMatch("padding"), "masking='padding'"),
        (lambda: MatchAggregation(masking="padding"), "masking='padding'"),
        (lambda: MemoryAttention(7).build((B, T, D), (B, S, D)), "features=11, heads=7"),
        (lambda: MemoryAttention(2, projected=False), "heads=2, projected=False"),
        (lambda: OrderedWords(V, D, encoding="sum"), "encoding='sum'"),
        (lambda: OrderedWords(V, D, encoding="attention"), "needs max_words. Received: 0"),
        (lambda: RecurrentEncoder("rnn"), "cell='rnn'"),
        (lambda: RecurrentEncoder(merge="mul"), "merge='mul'"),
        (lambda: RecurrentEncoder(units=7), "must be even.*units=7"),
        (lambda: RecurrentDecoder("rnn"), "cell='rnn'"),
        (lambda: RecurrentDecoder(attention="no"), "attention='no'"),
        (lambda: RecurrentDecoder(output="no"), "output='no'"),
        (lambda: SelfAttention()(keras.Input((D,))), "expected ndim=3, found ndim=2"),
        (lambda: Shortcut("highway"), "kind='highway'"),
    ],
)
def test_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Every layer keeps Keras's contract and ignores padding; equations are in other files."""

import functools
import json

import keras
import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import CASES, B, D, J, S, T, V, call, outputs_of

from colloquy.layers.attention import Attention
from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.attentive_module import AttentiveModule
from colloquy.layers.cross_match import CrossMatch
from colloquy.layers.match_aggregation import MatchAggregation
from colloquy.layers.memory_attention import MemoryAttention
from colloquy.layers.ordered_words import OrderedWords
from colloquy.layers.recurrent import RecurrentDecoder, RecurrentEncoder
from colloquy.layers.shortcut import Shortcut

PADDED = [name for name, each in CASES.items() if each.pads]


@functools.cache
def shared(name, policy="float32"):
    """The layer of a case, which no test changes, and its outputs."""
    layer = CASES[name].build(dtype=policy)
    return layer, keras.tree.flatten(call(layer, CASES[name].inputs))


def as_json(config):
    return json.loads(json.dumps(config))


@pytest.mark.parametrize("name", CASES)
def test_saves_and_loads_and_knows_its_output(name):
    """From JSON: class, arguments, dtype policy, with the weights the same outputs; shapes and
    dtypes of symbols.
    """
    policy = "mixed_bfloat16"
    layer, outputs = shared(name, policy)
    inputs = CASES[name].inputs
    again = keras.saving.deserialize_keras_object(
        as_json(keras.saving.serialize_keras_object(layer))
    )
    assert type(again) is type(layer) and as_json(again.get_config()) == as_json(layer.get_config())
    assert again.dtype_policy.name == policy
    policies = (
        [part.dtype_policy.name for part in each._flatten_layers()] for each in (again, layer)
    )
    assert len({*map(tuple, policies)}) == 1
    call(again, inputs)
    again.set_weights(layer.get_weights())
    for found, expected in zip(outputs_of(again, inputs), outputs, strict=True):
        np.testing.assert_array_equal(found, to_numpy(expected))
    symbols = keras.tree.map_structure(
        lambda x: keras.KerasTensor(x.shape, str(x.dtype)) if hasattr(x, "shape") else x, inputs
    )
    for found, expected in zip(keras.tree.flatten(call(layer, symbols)), outputs, strict=True):
        assert tuple(found.shape) == tuple(expected.shape)
        assert keras.backend.standardize_dtype(found.dtype) == keras.backend.standardize_dtype(
            expected.dtype
        )


@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_near_float32(name):
    exact, expected = shared(name)
    for policy in ("mixed_float16", "mixed_bfloat16"):
        layer, outputs = shared(name, policy)
        for weight, wanted in zip(layer.weights, exact.weights, strict=True):
            np.testing.assert_array_equal(to_numpy(weight), to_numpy(wanted))
            assert str(weight.dtype) in ("float32", "int32", "uint32")
        for found, wanted in zip(map(to_numpy, outputs), map(to_numpy, expected), strict=True):
            assert np.abs(found - 1.0 * wanted).max() <= 0.08 * max(np.abs(wanted).max(), 1.0)


@pytest.mark.parametrize("name", PADDED)
def test_ignores_padding(name):
    """More of it, filled with anything, changes no output that counts; what it adds is beside
    them.
    """
    (layer, outputs), counts = shared(name), CASES[name].inputs.get(CASES[name].counts)
    for found, expected in zip(
        outputs_of(layer, CASES[name].padded(garbage=-40.0)), map(to_numpy, outputs), strict=True
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
        (lambda: CrossMatch("padding"), "masking='padding'"),
        (lambda: MatchAggregation(masking="padding"), "masking='padding'"),
        (lambda: MemoryAttention(7).build((B, T, D), (B, S, D)), "features=11, heads=7"),
        (lambda: MemoryAttention(2, projected=False), "heads=2, projected=False"),
        (lambda: OrderedWords(V, D, encoding="sum"), "encoding='sum'"),
        (lambda: RecurrentEncoder("rnn"), "cell='rnn'"),
        (lambda: RecurrentEncoder(merge="mul"), "merge='mul'"),
        (lambda: RecurrentEncoder(units=7), "must be even.*units=7"),
        (lambda: RecurrentDecoder("rnn"), "cell='rnn'"),
        (lambda: RecurrentDecoder(attention="no"), "attention='no'"),
        (lambda: RecurrentDecoder(output="no"), "output='no'"),
        (lambda: Shortcut("highway"), "kind='highway'"),
    ],
)
def test_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Layers with call arguments, for the contract that all keep and for the tests of their
equations.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
import pytest
from helpers import randomised, to_numpy

from colloquy.layers.attention import SCORES, Attention
from colloquy.layers.attention_flow import AttentionFlow
from colloquy.layers.attentive_module import AttentiveModule
from colloquy.layers.bag_of_words import BagOfWords
from colloquy.layers.bilstm import BiLSTM
from colloquy.layers.candidates import IdTable, MatchTypes
from colloquy.layers.char_cnn import CharacterCNN, Highway
from colloquy.layers.cross_match import CrossMatch
from colloquy.layers.dialog_history import SpeakerFeature, TimeFeature
from colloquy.layers.dialog_state import DialogState
from colloquy.layers.dynamic_attention import DynamicBiLSTM
from colloquy.layers.entity_pointer import EntityPointer
from colloquy.layers.gradients import Dense
from colloquy.layers.layer_norm import LayerNorm
from colloquy.layers.lexical_match import LexicalMatch
from colloquy.layers.match_aggregation import MatchAggregation
from colloquy.layers.memory_attention import MemoryAttention
from colloquy.layers.ordered_words import OrderedWords
from colloquy.layers.positions import PositionalEncoding
from colloquy.layers.recurrent_decoder import AFTER, BEFORE, RecurrentDecoder
from colloquy.layers.recurrent_encoder import STATES, RecurrentEncoder
from colloquy.layers.self_attention import SelfAttention
from colloquy.layers.sentence_gru import SentenceGRU
from colloquy.layers.shortcut import KINDS, Shortcut
from colloquy.layers.state_vector import StateVector
from colloquy.layers.templates import TemplateCandidates
from colloquy.layers.word_embedding import ReversibleWordEmbedding, WordEmbedding

B, T, S, J, D, E, V = 2, 3, 5, 7, 11, 13, 17
# batch, turns or target words, context or source words, query or response words, features,
# features, vocabulary


def floats(*shape, seed=0):
    return np.random.default_rng(seed).normal(0.0, 0.7, shape).astype("float32")


def ids(*shape, seed=0):
    """Word ids, padded at the end: the last example of each axis is short."""
    found = np.random.default_rng(seed).integers(1, V + 1, shape).astype("int32")
    found[-1, ..., shape[-1] // 2 :] = 0
    return found


def real(*shape, short=1):
    """A mask: along the last axis every second example lacks the last two entries, the first of
    them is `short`.
    """
    lengths = shape[-1] - 2 * (np.arange(np.prod(shape[:-1], dtype=int)) % 2 == short)
    return (np.arange(shape[-1]) < lengths[:, None]).reshape(shape)


def numbers(high, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, high, shape).astype("int32")


def call(layer, inputs):
    """Tensors by position: Keras gives a keyword `mask` a meaning of its own."""
    tensors = [x for x in inputs.values() if not isinstance(x, int)]
    return layer(*tensors, **{name: x for name, x in inputs.items() if isinstance(x, int)})


def outputs_of(layer, inputs):
    return [to_numpy(y) for y in keras.tree.flatten(call(layer, inputs))]


@dataclasses.dataclass
class Case:
    """A layer with call arguments."""

    make: Callable
    """From keyword arguments (`dtype`) to the layer."""
    inputs: dict
    """The call arguments by name, in their order."""
    pads: dict = dataclasses.field(default_factory=dict)
    """`{argument: axes}` to pad: floats by garbage, ids by 0, masks by `False`."""
    masks: dict = dataclasses.field(default_factory=dict)
    """`{float argument: mask}`, the argument or array which says where garbage may be put."""
    counts: str = ""
    """The mask argument that says which outputs count; empty: all."""
    tables: dict = dataclasses.field(default_factory=dict)
    """`{attribute: ids}` of weights that are set once."""

    def build(self, **options):
        layer = self.make(**options)
        call(layer, self.inputs)
        randomised(layer, 1, 0.4)
        for name, values in self.tables.items():
            getattr(layer, name).assign(values)
        return layer

    def padded(self, garbage, cells=2):
        """The inputs with more padding."""
        found = dict(self.inputs)
        for name, mask in self.masks.items():
            mask = self.inputs[mask] if isinstance(mask, str) else mask
            x = found[name]
            mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
            found[name] = np.where(mask, x, garbage).astype(x.dtype)
        for name, axes in self.pads.items():
            x = found[name]
            fill = garbage if x.dtype == np.float32 else 0
            found[name] = np.pad(
                x, [(0, cells * (axis in axes)) for axis in range(x.ndim)], constant_values=fill
            )
        return found


def case(layer, *args, inputs, **options):
    """A `Case` of a layer class and its arguments; those in `Case`'s fields are the case's."""
    own = {field.name for field in dataclasses.fields(Case)}
    settings = {name: options.pop(name) for name in [*options] if name not in own}
    return Case(lambda **k: layer(*args, **settings, **k), inputs, **options)


MEMORY = {"pads": {"memory": [1], "memory_mask": [1]}, "masks": {"memory": "memory_mask"}}


def attention(score):
    size = E if score in ("additive", "general") else D
    inputs = {"query": floats(B, T, D), "memory": floats(B, S, size, seed=1)}
    inputs["memory_mask"] = real(B, S)
    return case(Attention, score, J, inputs=inputs, **MEMORY)


def flow(**settings):
    inputs = {"context": floats(B, S, D), "query": floats(B, J, D, seed=1)}
    inputs |= {"context_mask": real(B, S), "query_mask": real(B, J, short=0)}
    pads = {name: [1] for name in inputs}
    masks = {"context": "context_mask", "query": "query_mask"}
    return case(
        AttentionFlow, inputs=inputs, pads=pads, masks=masks, counts="context_mask", **settings
    )


def attentive(**settings):
    inputs = {
        "query": floats(B, 1, S, D),
        "key": floats(1, T, J, D, seed=1),
        "value": floats(1, T, J, D, seed=2),
    }
    inputs |= {"query_mask": real(B, 1, S), "key_mask": real(T, J, short=0)[None]}
    masks = {"query": "query_mask", "key": "key_mask", "value": "key_mask"}
    exact = settings.get("masking", "exact") == "exact"
    pads = (
        {"query": [2], "key": [2], "value": [2], "query_mask": [2], "key_mask": [2]}
        if exact
        else {}
    )
    return case(AttentiveModule, inputs=inputs, pads=pads, masks=masks if exact else {}, **settings)


def cross(**settings):
    U, R, u_mask, r_mask = (
        floats(1, T, S, D),
        floats(B, 1, J, D, seed=1),
        real(T, S, short=0)[None],
        real(B, 1, J),
    )
    inputs = {"utterance": U, "response": R, "scores": U @ np.swapaxes(R, -1, -2)}
    inputs |= {"utterance_mask": u_mask, "response_mask": r_mask}
    pads = {
        "utterance": [2],
        "response": [2],
        "scores": [2, 3],
        "utterance_mask": [2],
        "response_mask": [2],
    }
    cells = u_mask[..., :, None] & r_mask[..., None, :]
    masks = {"utterance": "utterance_mask", "response": "response_mask", "scores": cells}
    return case(CrossMatch, inputs=inputs, pads=pads, masks=masks, **settings)


def aggregation(turns=2, words=S, response_words=J, **settings):
    mask = real(B, T, turns, words)[..., None] & real(B, 1, 1, 1, response_words)
    inputs = {
        "matches": [floats(*mask.shape, seed=seed) * mask for seed in range(3)],
        "cell_mask": mask,
    }
    return case(
        MatchAggregation,
        turns,
        response_words,
        (5, 3),
        1.5,
        inputs=inputs,
        tables={"b3": [0.3]},
        **settings,
    )


def decoder(attention, **settings):
    size = D if "dot" in attention else E
    count = settings.get("layers", 1) * STATES[settings.get("cell", "gru")]
    states = [floats(B, D, seed=seed) for seed in range(count)]
    inputs = {
        "y": floats(B, T, E),
        "memory": floats(B, S, size, seed=1),
        "memory_mask": real(B, S),
        "states": states,
    }
    return case(RecurrentDecoder, inputs=inputs, units=D, attention=attention, **MEMORY, **settings)


def memory(timed, **settings):
    inputs = {
        "query": floats(B, T, 3 * D),
        "memory": floats(B, S, 3 * D, seed=1),
        "memory_mask": real(B, T, S),
    }
    pads = {"memory": [1], "memory_mask": [2]}
    if timed:
        inputs |= {"time_vectors": floats(J, 3 * D, seed=2), "distances": DISTANCES}
        pads["distances"] = [2]
    return case(MemoryAttention, inputs=inputs, pads=pads, divisor=3.0, **settings)


def pointer(conditions):
    inputs = {**POINTED, "conditions": conditions.astype(bool)}
    tables = {"entity_CK": numbers(E + 1, J, 2)}
    return case(EntityPointer, (J, 2), 2, inputs=inputs, pads=POINTED_PADS, tables=tables)


DISTANCES = np.eye(J, dtype="float32")[numbers(J, B, T, S)]
SENTENCES = {
    "state": floats(B, T, D),
    "mentions": numbers(2, B, S, E).astype("uint8"),
    "seen": real(B, T, S),
}
POINTED = {"state": floats(B, T, D), "sentences": floats(B, S, D, seed=1), "seen": real(B, T, S)}
POINTED |= {"mentions": SENTENCES["mentions"], "time_vectors": floats(J, D, seed=2)}
POINTED["distances"] = DISTANCES
POINTED_PADS = {"sentences": [1], "seen": [2], "mentions": [1], "distances": [2]}
TALKED = {
    "speakers": numbers(4, B, S),
    "turns": numbers(S, B, T),
    "entities": numbers(1 + E, B, S, D, seed=1),
}
TALKED["responses"] = numbers(J + 2, B, S, seed=2) - 1
STATE_TABLES = {
    "is_call_C": numbers(2, J),
    "slot_E": numbers(T, 1 + E),
    "restaurant_E": np.arange(1 + E) % 9,
}
CHOSEN = {
    "template_logits": floats(B, T, S),
    "gain": 9 * floats(B, T, J, seed=1),
    # Template 1 has no candidate.
    "template_of_candidate": np.array([0, 3, 2, 0, 4, 0, 3], "int32"),
}
JOINED = {"output": floats(B, D), "state": floats(B, D, seed=1)}
HISTORY = {"times": numbers(T, B, D), "turns": numbers(D, B, S)}
SPOKEN = {"x": floats(B, S, D), "speakers": numbers(4, B, S)}
SENTENCE = {"inputs": {"ids": ids(B, S)}, "pads": {"ids": [0, 1]}}
WORDS = {
    "inputs": {"x": floats(B, S, D), "mask": real(B, S)},
    "pads": {"x": [1], "mask": [1]},
    "masks": {"x": "mask"},
}
LEXICAL = {"context": ids(B, T, S), "responses": ids(B, J, D, seed=1)}
IDF = {"idf": np.linspace(0.1, 2.0, V + 1)}
STEMS = IDF | {"stem": np.append(0, numbers(V, V) + 1)}
MATCH_TABLES = {
    "member_GL": numbers(E + 1, S, 2, seed=1),
    "type_G": numbers(T, S),
    "group_CK": numbers(S + 1, J, 2),
}

CASES = {
    **{f"Attention {score}": attention(score) for score in SCORES},
    "AttentionFlow": flow(),
    "AttentionFlow, ablations": flow(c2q=False, q2c=False),
    "AttentionFlow, perceptrons": flow(kind="mlp", fusion="mlp"),
    "AttentiveModule": attentive(epsilon=0.25),
    "AttentiveModule, scalar bias": attentive(scalar_bias=True),
    "AttentiveModule, release": attentive(masking="release"),
    **{
        f"BagOfWords, {kind}": case(
            BagOfWords, V, D, S, kind, inputs={"ids": ids(B, T, S)}, pads={"ids": [1, 2]}
        )
        for kind in ("none", "interleaved", "halves")
    },
    "BagOfWords, frozen": case(BagOfWords, V, D, S, inputs={"ids": ids(B, S)}, trainable=False),
    "BagOfWords, scaled": case(BagOfWords, V, D, scale=3.0, inputs={"ids": ids(B, S)}),
    "BiLSTM": case(BiLSTM, J, **WORDS),
    "CharacterCNN": case(CharacterCNN, V, T, J, 2, 0.3, **SENTENCE),
    "CrossMatch": cross(),
    "Dense": case(Dense, J, inputs={"x": floats(B, T, D)}, activation="tanh"),
    "DynamicBiLSTM": case(
        DynamicBiLSTM, T, inputs=flow().inputs, pads=flow().pads, masks=flow().masks
    ),
    "DialogState": case(DialogState, T, E, J, inputs=TALKED, tables=STATE_TABLES),
    "EntityPointer": pointer(numbers(2, B, T, 2, 1 + E)),
    "EntityPointer, no condition met": pointer(np.zeros((B, T, 2, 1 + E))),
    "Highway": case(Highway, inputs={"x": floats(B, T, D)}),
    "IdTable": case(IdTable, (J, 2), inputs={"x": floats(B)}, tables={"ids": numbers(V, J, 2)}),
    "LayerNorm": case(LayerNorm, inputs={"x": floats(B, T, D)}, epsilon=0.1),
    "LexicalMatch": case(
        LexicalMatch, V, 2, 1.5, 1.7, inputs=LEXICAL, pads={x: [1, 2] for x in LEXICAL}, tables=IDF
    ),
    "LexicalMatch, echo": case(
        LexicalMatch, V, 2, stems=True, echo_gain=7.0, inputs=LEXICAL, tables=STEMS
    ),
    "LexicalMatch, stems": case(
        LexicalMatch, V, 2, stems=True, inputs=LEXICAL, pads={"context": [2]}, tables=STEMS
    ),
    "MatchAggregation": aggregation(),
    "MatchAggregation, release": aggregation(masking="release"),
    "MatchTypes": case(
        MatchTypes,
        T,
        (S, 2),
        (J, 2),
        inputs=SENTENCES,
        pads={"mentions": [1], "seen": [2]},
        tables=MATCH_TABLES,
    ),
    "MemoryAttention": memory(True, heads=3),
    "MemoryAttention, plain": memory(False, projected=False),
    "OrderedWords, position": case(OrderedWords, V, D, J, **SENTENCE),
    "OrderedWords, attention": case(OrderedWords, V, 3 * D, J, "attention", 3, False, **SENTENCE),
    "OrderedWords, interleaved": case(
        OrderedWords, V, 3 * D, J, "attention", 3, True, "interleaved", 2.0, **SENTENCE
    ),
    "PositionalEncoding": case(
        PositionalEncoding, J, inputs={"x": floats(B, T, S, D)}, pads={"x": [2]}
    ),
    "RecurrentEncoder gru concat": case(
        RecurrentEncoder, "gru", 2 * D, 2, True, "concat", 0.3, **WORDS
    ),
    "RecurrentEncoder lstm sum": case(
        RecurrentEncoder, "lstm", 2 * D, 2, True, "sum", 0.3, **WORDS
    ),
    "RecurrentEncoder, one way": case(RecurrentEncoder, "lstm", J, bidirectional=False, **WORDS),
    **{f"RecurrentDecoder {kind}": decoder(kind) for kind in ("none", *BEFORE, *AFTER)},
    "RecurrentDecoder lstm, all": decoder("additive", cell="lstm", output="all", dropout=0.3),
    "ReversibleWordEmbedding": case(
        ReversibleWordEmbedding, V, D, inputs={"inputs": floats(B, T, D), "scored": V}
    ),
    "SelfAttention": case(SelfAttention, counts="mask", **WORDS),
    "SentenceGRU": case(SentenceGRU, V, D, **SENTENCE),
    "SentenceGRU, frozen": case(SentenceGRU, V, D, False, inputs={"ids": ids(B, S)}),
    **{f"Shortcut {kind}": case(Shortcut, kind, "sigmoid", inputs=JOINED) for kind in KINDS},
    "SpeakerFeature": case(SpeakerFeature, inputs=SPOKEN, pads={"x": [1], "speakers": [1]}),
    "StateVector": case(StateVector, D, inputs={"known": real(B, T, J)}),
    "TemplateCandidates": case(TemplateCandidates, inputs=CHOSEN),
    "TimeFeature": case(TimeFeature, 2, D, inputs=HISTORY, pads={"times": [1], "turns": [1]}),
    "WordEmbedding": case(WordEmbedding, V + 1, D, inputs={"ids": ids(B, T, S)}),
}

CASES_ONE_FAST = []
"""The names of all cases, for `parametrize`; of each class, all but the first are slow."""
classes_so_far = set()
for case_name in CASES:
    class_name = case_name.replace(",", "").split()[0]
    is_variant = class_name in classes_so_far
    CASES_ONE_FAST.append(pytest.param(case_name, marks=pytest.mark.slow if is_variant else ()))
    classes_so_far.add(class_name)


def built(name, **options):
    """The layer of a case with random weights, and its call arguments."""
    return CASES[name].build(**options), list(CASES[name].inputs.values())

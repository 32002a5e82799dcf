"""One mechanism per file.

Layers know nothing of data, files or training, and import `keras` only. Each can be imported from
here, as `from colloquy.layers import AttentionFlow`, which loads its file alone.
"""

import importlib

from colloquy.base.backend import check_backend

# Every layer imports Keras, so a wrong backend is refused here, in one sentence.
check_backend()


FILES = {
    "Attention": "attention",
    "AttentionFlow": "attention_flow",
    "AttentiveModule": "attentive_module",
    "BagOfWords": "bag_of_words",
    "BiLSTM": "bilstm",
    "CharacterCNN": "char_cnn",
    "CrossMatch": "cross_match",
    "Dense": "gradients",
    "DialogState": "dialog_state",
    "DynamicBiLSTM": "dynamic_attention",
    "EntityPointer": "entity_pointer",
    "Highway": "char_cnn",
    "IdTable": "candidates",
    "LayerNorm": "layer_norm",
    "LexicalMatch": "lexical_match",
    "MatchAggregation": "match_aggregation",
    "MatchTypes": "candidates",
    "MemoryAttention": "memory_attention",
    "OrderedWords": "ordered_words",
    "PositionalEncoding": "positions",
    "RecurrentDecoder": "recurrent_decoder",
    "RecurrentEncoder": "recurrent_encoder",
    "ReversibleWordEmbedding": "word_embedding",
    "SelfAttention": "self_attention",
    "SentenceGRU": "sentence_gru",
    "Shortcut": "shortcut",
    "SpeakerFeature": "dialog_history",
    "StateVector": "state_vector",
    "TemplateCandidates": "templates",
    "TimeFeature": "dialog_history",
    "WordEmbedding": "word_embedding",
}
"""The file of each layer."""


def __getattr__(name):
    if name not in FILES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(importlib.import_module(f"{__name__}.{FILES[name]}"), name)


def check_choice(name, value, known):
    """Raises a `ValueError` if an argument is not one of its known values."""
    if value not in known:
        raise ValueError(f"{name} must be one of {known}. Received: {name}={value!r}")

"""Search for replies: greedy search, beams, sampling, reranking.

Letters: R sources   S source words   T target words   K replies to a source   L words of a reply
"""

import functools
from typing import Annotated, NamedTuple, Self

import numpy as np
from keras import KerasTensor, ops
from pydantic import Field, model_validator

from colloquy.base.config import make_config, parse_assignments
from colloquy.base.files import UserError
from colloquy.data.batching import batches_by_size
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import EOS_ID, PADDING_ID, UNK_ID
from colloquy.engine.devices import choose_xla
from colloquy.engine.parallel import compile_for_all_sizes, results_of
from colloquy.engine.run import CONFIG, Run
from colloquy.engine.task import ScoringOptions
from colloquy.layers.masking import LOWEST
from colloquy.models.decoding import INPUTS, Decoder, Decoding
from colloquy.tasks.generation.data import MAX_SOURCE, GenerationSplit
from colloquy.tasks.generation.scoring import likelihood


class Options(ScoringOptions):
    """Settings of the search for replies."""

    decode: str = ""
    """`field=value,...` of `models.decoding.Decoding`; empty: greedy search to score, the run's own
    search to answer."""
    reverse_run: str = ""
    """Run of a reverse model, which chooses among the replies found."""
    reverse_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Weight of the reverse model's score."""

    @model_validator(mode="after")
    def _check_search(self) -> Self:
        parse_decoding(self.decode)
        if "reverse_weight" in self.model_fields_set and not self.reverse_run:
            raise ValueError("reverse_weight needs reverse_run")
        return self


class SearchShape(NamedTuple):
    """Sizes and switches that are fixed when a search is compiled; see `models.decoding.decode`."""

    num_beams: int
    reply_length: int
    sample: bool
    anti_lm: bool


def search_shape(decoding, reply_length=0):
    """Returns the `SearchShape` of a `Decoding`, for replies of at least `reply_length` words."""
    return SearchShape(
        num_beams=decoding.beam,
        reply_length=max(reply_length, decoding.max_length),
        sample=decoding.sample,
        anti_lm=decoding.anti_lm_weight > 0,
    )


def decoding_inputs(decodings):
    """Returns the `INPUTS` of a search for sources with a `Decoding` each: `{field: (B, 1)}`.

    >>> decoding_inputs([Decoding(min_length=5), Decoding()])["min_length"].tolist()
    [[5], [0]]
    """
    inputs = {}
    for name, dtype in INPUTS.items():
        inputs[name] = np.array([[getattr(decoding, name)] for decoding in decodings], dtype)
    return inputs


def reply(model, sources, decoding, batch_size=64, seed=1, progress=iter, length_multiple=4):
    """Writes replies to `R` sources.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        sources: `data.sequences.Sequences` of ids.
        decoding: `Decoding`, the same for all sources.
        batch_size: Sources that are searched together.
        seed: Seed of sampling.
        progress: Wraps the list of batches.
        length_multiple: Lengths of sources are rounded up to multiples of it.

    Returns:
        Ids, int32 `(R, K, L)`, the best reply first.
        The scores that they are ranked by, float32 `(R, K)`.
    """
    shape = len(sources), decoding.beam, decoding.max_length
    ids_RKL = np.zeros(shape, np.int32)
    scores_RK = np.zeros(shape[:2], np.float32)
    noise_RKL = None
    if decoding.sample:
        noise_RKL = np.random.default_rng(seed).random(shape, np.float32)

    def make_inputs(rows):
        width = sources.width(rows, MAX_SOURCE, length_multiple)
        source = sources.padded(rows, width, MAX_SOURCE)
        inputs = {"source": source, **decoding_inputs([decoding] * len(rows))}
        if noise_RKL is not None:
            inputs["noise"] = noise_RKL[rows]
        return inputs

    decoder = compile_decoder(model, search_shape(decoding))
    batches = batches_by_size(sources.lengths[:, None], batch_size)
    results = results_of(decoder.predict_on_batch, make_inputs, batches, progress=progress)
    for rows, (ids, scores) in results:
        ids_RKL[rows] = ids
        scores_RK[rows] = scores
    return ids_RKL, scores_RK


def compile_decoder(model, shape):
    """Compiles a `models.decoding.Decoder` for searches of a `SearchShape`.

    It is compiled by XLA if the model is.
    """
    decoder = Decoder(model, shape.num_beams, shape.reply_length, EOS_ID, UNK_ID, shape.anti_lm)
    decoder.jit_compile = model.jit_compile
    inputs = {name: KerasTensor((None, 1), dtype) for name, dtype in INPUTS.items()}
    inputs["source"] = KerasTensor((None, None), "int32")
    if shape.sample:
        noise_shape = (None, shape.num_beams, shape.reply_length)
        inputs["noise"] = KerasTensor(noise_shape, "float32")
    compile_for_all_sizes(decoder, inputs)
    return decoder


def rerank(reverse, sources, ids, scores, weight=0.5):
    """Sorts replies by `(1 - weight) log p(reply | source) + weight log p(source | reply)`.

    This is eq. 13 of Li et al. 2016, "MMI-bidi": replies that would answer anything come last. The
    first term is the score of `reply`.

    Args:
        reverse: A model trained with `reverse=true`.
        sources: Sources of `reply`.
        ids: Int32 `(R, K, L)`, as `reply` returns them.
        scores: Float32 `(R, K)`, as `reply` returns them.
        weight: Weight of the reverse model.

    Returns:
        The ids in the new order, and the sums above.
    """
    R, K, L = ids.shape
    replies = []
    for row in ids.reshape(R * K, L):
        words = row[(row != PADDING_ID) & (row != EOS_ID)]
        replies.append([*words, EOS_ID])
    source_of_reply = np.repeat(np.arange(R), K)
    pairs = GenerationSplit(
        source=Sequences.of(replies),
        target=sources.take(source_of_reply),
        bos=reverse.begin_id,
    )
    reverse_nll_RK = likelihood(reverse, pairs).reshape(R, K)
    sums_RK = (1 - weight) * scores - weight * reverse_nll_RK
    is_found_RK = scores > LOWEST  # the search may have found fewer than K
    sums_RK = np.where(is_found_RK, sums_RK, LOWEST)

    order_RK = np.argsort(-sums_RK, axis=1, kind="stable")
    ids = np.take_along_axis(ids, order_RK[..., None], axis=1)
    return ids, np.take_along_axis(sums_RK, order_RK, axis=1)


def load_reverse(path, vocabulary):
    """Loads the reverse model of a run; one of another model or vocabulary is a `UserError`."""
    run = Run.open(path)
    if run.model != "seq2seq" or not run.config.reverse:
        raise UserError(
            f"{path}: expected a run trained with --set reverse=true. Received: {run.model}"
        )
    if run.vocabulary.words != vocabulary.words:
        raise UserError(
            f"{path}: expected the vocabulary of the model that writes the replies. "
            "Received: another"
        )
    model = run.load_model()
    choose_xla(model, "auto")
    return model


def attention(model, source, ids):
    """Attention over a source at each word of a reply, `_EOS_` included.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        source: A list of ids.
        ids: The reply, int `(L,)`.

    Returns:
        Rows of floats; none for a model without attention.
    """
    words = ids[ids != PADDING_ID].tolist()
    states, cache = model.encode(np.array([source], np.int32))
    rows = []
    for previous_word in [model.begin_id, *words[:-1]]:
        _, states, weights = model.step(np.array([previous_word], np.int32), states, cache)
        if weights is not None:
            rows += ops.convert_to_numpy(weights).tolist()
    return rows


def words_of(ids, vocabulary):
    """The words of a reply, int `(L,)`, without `_EOS_` and padding."""
    return [vocabulary.words[id - 1] for id in ids.tolist() if id not in (PADDING_ID, EOS_ID)]


@functools.lru_cache(maxsize=64)
def parse_decoding(text, name="--decode"):
    """Makes a `Decoding` of `field=value,...`.

    Raises:
        UserError: It is anything else. The message calls it `name`.
    """
    parts = [part.strip() for part in (text or "").split(",")]
    assignments = [part for part in parts if part]
    return make_config(Decoding, parse_assignments(assignments, name), f"{name}: ")


def decoding_of(run):
    """The `Decoding` of a run where nobody names one: `decode` of its `config.json`, or greedy.

    Another `decode` than `parse_decoding` takes is a `UserError`.
    """
    return parse_decoding(run.record.get("decode"), f"{run.path / CONFIG}: decode")


def decoding_text(decoding):
    """The fields in which a `Decoding` differs from greedy search, as `parse_decoding` takes them.

    >>> decoding_text(parse_decoding("beam=5,block_ngrams=3")), decoding_text(Decoding())
    ('beam=5, block_ngrams=3', '')
    """
    greedy = Decoding()
    changes = []
    for name, value in decoding:
        if value != getattr(greedy, name):
            changes.append(f"{name}={value}")
    return ", ".join(changes)

"""How replies are searched for: greedy search, beams, sampling, reranking.

Letters: B pairs   S source words   T target words   K replies to a source   L words of a reply   V words
"""

import numpy as np
from keras import ops

from base.config import make_config
from base.files import UserError
from data.batching import batches_by_size
from data.sequences import Sequences
from data.vocabulary import EOS_ID, UNK_ID
from engine.parallel import results_of
from engine.run import Run
from engine.vocabularies import vocabulary_of
from models.decoding import Decoder, Decoding
from tasks.generation.data import MAX_SOURCE, GenerationSplit
from tasks.generation.scoring import likelihood


def reply(model, split, rows, decoding, batch_size=64, seed=1, progress=iter, length_multiple=4):
    """Writes replies to sources.

    Args:
        model: A `models.seq2seq.Seq2Seq`.
        split: A `tasks.generation.data.GenerationSplit`.
        rows: Numbers of its pairs, int `(R,)`.
        decoding: A `models.decoding.Decoding`.
        batch_size: Sources at once.
        seed: Of sampling.
        progress: Wraps the list of batches.
        length_multiple: Lengths of sources are rounded up to it.

    Returns:
        Ids, int32 `(R, K, L)`, the best reply first, and what they are ranked by, float32 `(R, K)`.
    """
    rows, rng = np.asarray(rows), np.random.default_rng(seed)
    shape = len(rows), decoding.beam, decoding.max_length
    ids, scores = np.zeros(shape, np.int32), np.zeros(shape[:2], np.float32)
    noise = rng.random(shape, np.float32) if decoding.sample else None
    decoder = Decoder(model, decoding, EOS_ID, UNK_ID)
    decoder.jit_compile = model.jit_compile
    batches = batches_by_size(split.source.lengths[rows][:, None], batch_size)

    def inputs_of(batch):
        inputs, _ = split.collate(rows[batch], length_multiple, MAX_SOURCE)
        return {"source": inputs["source"]} | ({} if noise is None else {"noise": noise[batch]})

    for batch, found in results_of(decoder.predict_on_batch, inputs_of, batches, progress=progress):
        ids[batch], scores[batch] = found
    return ids, scores


def rerank(reverse, sources, ids, scores, weight=0.5):
    """Puts replies in the order of `(1 - weight) log p(reply | source) + weight log p(source | reply)`: against dull
    ones, which answer anything (Li et al. 2016, eq. 13, "MMI-bidi"). The first is what `reply` ranked them by, by the
    length penalty where there is one.

    Args:
        reverse: A model trained with `reverse=true`.
        sources: Ids of each source, `R` lists.
        ids, scores: What `reply` returned for them.
        weight: Lambda, from 0 to 1.

    Returns:
        Both in the new order, scores the sums above.
    """
    R, K, _ = ids.shape
    replies = [[id for id in each.tolist() if id not in (0, EOS_ID)] + [EOS_ID] for each in ids.reshape(R * K, -1)]
    pairs = GenerationSplit(
        source=Sequences.of([source for source in sources for _ in range(K)]),
        target=Sequences.of(replies),
        source_texts=[],
        target_texts=[],
        seen=np.zeros(R * K, bool),
        bos=reverse.begin_id,
    )
    nll, _ = likelihood(reverse, pairs, reverse.config)
    scores = (1 - weight) * scores - weight * nll.reshape(R, K)
    order = np.argsort(-scores, axis=1, kind="stable")
    return np.take_along_axis(ids, order[..., None], axis=1), np.take_along_axis(scores, order, axis=1)


def load_reverse(path, vocabulary):
    """The model of a run that reads replies and writes sources.

    Args:
        path: Run directory.
        vocabulary: The `data.vocabulary.Vocabulary` that it must have.

    Raises:
        UserError: where the run is of another model, or has other words.
    """
    run = Run.open(path)
    if run.model != "seq2seq" or not run.config.reverse:
        raise UserError(f"{path}: expected a run trained with --set reverse=true. Received: {run.model}")
    if vocabulary_of(run).words != vocabulary.words:
        raise UserError(f"{path}: expected the words of the model that writes the replies; this run has others")
    return run.load_model()


def attention(model, source, ids):
    """What a model attends to when it writes a reply.

    Args:
        model: As of `reply`.
        source: Ids of the source, a list.
        ids: Of the reply, int `(L,)`.

    Returns:
        Weights, float32 `(T, S)`, T words of the reply with its `_EOS_`; `None` for a model without attention.
    """
    words = ids[ids != 0].tolist()
    states, cache = model.encode(np.array([source], np.int32))
    rows = []
    for before in [model.begin_id, *words[:-1]]:
        _, states, weights = model.step(np.array([before], np.int32), states, cache)
        if weights is None:
            return None
        rows.append(ops.convert_to_numpy(weights)[0])
    return np.stack(rows).astype(np.float32)


def words_of(ids, vocabulary):
    """The words of a reply, without `_EOS_` and padding.

    Args:
        ids: Int `(L,)`.
        vocabulary: A `data.vocabulary.Vocabulary`.
    """
    return [vocabulary.words[id - 1] for id in ids.tolist() if id not in (0, EOS_ID)]


def parse_decoding(text):
    """A `Decoding` of `field=value,...`.

    Raises:
        UserError: where a field is unknown or a value wrong.
    """
    assignments = [part.partition("=") for part in (text or "").split(",") if part]
    for field, equals, _ in assignments:
        if not equals:
            raise UserError(f"--decode expects field=value,... Received: {field!r}")
    return make_config(Decoding, {field.strip(): value for field, _, value in assignments})


def search_of(decoding):
    """A `Decoding` in words.

    >>> search_of(Decoding(beam=5, block_ngrams=3, min_length=10))
    'beam of 5, no 3 words twice, at least 10 words'
    >>> search_of(Decoding(sample=True, top_p=0.9))
    'sampling, top_p 0.9'
    """
    d, default = decoding, Decoding()
    parts = ["sampling" if d.sample else "greedy" if d.beam == 1 else f"beam of {d.beam}"]
    fields = ("temperature", "top_k", "top_p") if d.sample else ()
    for field in (*fields, "length_penalty"):
        if getattr(d, field) != getattr(default, field):
            parts.append(f"{field if field in fields else 'length penalty'} {getattr(d, field):g}")
    if d.block_ngrams:
        parts.append(f"no {d.block_ngrams} words twice")
    if d.min_length:
        parts.append(f"at least {d.min_length} words")
    return ", ".join(parts)

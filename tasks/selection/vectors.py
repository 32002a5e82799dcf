"""Cheap vectors for retrieval: a context and the responses that follow it lie close to each other.

text -> mean of its word vectors by inverse document frequency -> canonical correlation analysis -> unit length

Canonical correlation analysis (Hotelling 1936) finds the directions along which contexts and their own responses vary
together, in closed form. What is kept per word is its weighted, projected vector, so that encoding is a sum.
"""

import dataclasses

import numpy as np
import scipy.sparse

from data.vocabulary import EOS_ID, UNK_ID


@dataclasses.dataclass(frozen=True)
class PairEncoder:
    """Two tables of word vectors, one for contexts and one for responses.

    Args:
        context_words, response_words: Float32 `(vocabulary + 1, D)`, projected; row 0 is padding.
        weights: Inverse document frequency of each word, float32 `(vocabulary + 1,)`; 0 for words that say nothing.
        context_mean, response_mean: What is taken off the weighted mean, float32 `(D,)`.
    """

    context_words: np.ndarray
    response_words: np.ndarray
    weights: np.ndarray
    context_mean: np.ndarray
    response_mean: np.ndarray

    @classmethod
    def fit(cls, contexts, responses, vectors, dimension=64, ridge=0.01):
        """Finds the directions that contexts share with their responses.

        Each direction is scaled by the square root of its correlation, so that a dot product weighs it by that.

        Args:
            contexts, responses: `data.sequences.Sequences` of word ids; list `i` of both are a pair.
            vectors: The model's word vectors, float `(vocabulary + 1, E)`.
            dimension: `D`; at most `E`.
            ridge: Added to the variances, as a fraction of their mean.
        """
        frequency = np.bincount(np.unique(_pairs(responses), axis=0)[:, 1], minlength=len(vectors))
        weights = np.log1p((len(responses.lengths) - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        weights[[0, EOS_ID, UNK_ID]] = 0.0
        vectors = np.asarray(vectors, np.float32) - vectors[UNK_ID + 1 :].mean(axis=0)

        X, Y = (_weighted_mean(texts, weights) @ vectors for texts in (contexts, responses))
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        whiten_X, whiten_Y = _whitening(X, ridge), _whitening(Y, ridge)
        left, correlations, right = np.linalg.svd(whiten_X @ (X.T @ Y / len(X)) @ whiten_Y)
        scale = np.sqrt(correlations[:dimension])
        tables = vectors @ whiten_X @ left[:, :dimension] * scale, vectors @ whiten_Y @ right[:dimension].T * scale
        tables = [table.astype(np.float32) for table in tables]
        means = [
            np.asarray((_weighted_mean(texts, weights) @ table).mean(axis=0))
            for texts, table in zip((contexts, responses), tables, strict=True)
        ]
        return cls(*tables, weights, *means)

    @property
    def dimension(self):
        """`D`."""
        return self.context_words.shape[1]

    def contexts(self, texts):
        """The vectors of contexts, of their concatenated turns.

        Args:
            texts: `data.sequences.Sequences` of word ids.

        Returns:
            Float32 `(texts, D)`, of length 1; zeros for a text of which no word says anything.
        """
        return self._vectors(texts, self.context_words, self.context_mean)

    def responses(self, texts):
        """The vectors of responses, as of `contexts`."""
        return self._vectors(texts, self.response_words, self.response_mean)

    def _vectors(self, texts, table, mean):
        weighted = _weighted_mean(texts, self.weights)
        x = np.where(np.diff(weighted.indptr)[:, None] > 0, weighted @ table - mean, 0.0)
        return (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def save(self, path):
        """Writes an `.npz` file."""
        np.savez(path, **dataclasses.asdict(self))

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**arrays)


def _pairs(texts):
    """Every word of every text as `(text, id)`."""
    return np.stack([np.repeat(np.arange(len(texts.lengths)), texts.lengths), texts.ids], axis=1)


def _weighted_mean(texts, weights):
    """A sparse matrix that maps word vectors to the weighted means of texts; a text without weight has zeros."""
    text, word = _pairs(texts).T
    total = np.bincount(text, weights=weights[word], minlength=len(texts.lengths))
    data = weights[word] / np.maximum(total, 1e-6)[text]
    shape = (len(texts.lengths), len(weights))
    mean = scipy.sparse.csr_matrix((data.astype(np.float32), (text, word)), shape)
    mean.eliminate_zeros()
    return mean


def _whitening(X, ridge):
    """`C^(-1/2)` of the covariance `C` of centered rows."""
    C = X.T @ X / len(X)
    values, directions = np.linalg.eigh(C + ridge * np.trace(C) / len(C) * np.eye(len(C), dtype=C.dtype))
    return (directions / np.sqrt(values)) @ directions.T

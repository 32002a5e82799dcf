"""Cheap vectors for retrieval: those of a context and of its responses are close.

text -> mean of its word vectors by inverse document frequency -> canonical correlation analysis ->
unit length

Canonical correlation analysis (Hotelling 1936) finds the directions along which contexts and their
responses vary together, in closed form. Each word's weighted, projected vector is stored, so that
encoding is a sum.
"""

import dataclasses

import numpy as np
import scipy.sparse

from colloquy.data.vocabulary import EOS_ID, UNK_ID


@dataclasses.dataclass(frozen=True)
class PairEncoder:
    """Two tables of word vectors, one for contexts and one for responses.

    Args:
        context_words, response_words: Projected word vectors, float32 `(vocabulary + 1, D)`; row 0
            is padding.
        weights: Inverse document frequency of each word, float32 `(vocabulary + 1,)`; 0 for words
        that say nothing. context_mean, response_mean: Subtracted from the weighted mean, float32
        `(D,)`.
    """

    context_words: np.ndarray
    response_words: np.ndarray
    weights: np.ndarray
    context_mean: np.ndarray
    response_mean: np.ndarray

    @classmethod
    def fit(cls, contexts, responses, vectors, dimension=64, ridge=0.01):
        """Finds the directions that contexts share with their responses, scaled by the roots of
        their correlations.

        Both are functions that return an iterator of `data.sequences.Sequences` of word ids; list
        `i` of both is a pair. The responses are read twice. `vectors` are the model's, float
        `(vocabulary + 1, E)`; `ridge` is added to the variances, as a fraction of their mean.
        """
        n, frequency = 0, np.zeros(len(vectors), np.int64)
        for part in responses():
            n += len(part)
            frequency += part.document_frequency(len(vectors))
        weights = np.log1p((n - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        weights[[0, EOS_ID, UNK_ID]] = 0.0
        vectors = np.asarray(vectors, np.float32) - vectors[UNK_ID + 1 :].mean(axis=0)

        z, ZZ = 0.0, 0.0  # sums of the rows of [X, Y], and of their products
        for pair in zip(contexts(), responses(), strict=True):
            Z = np.hstack([_weighted_mean(texts, weights) @ vectors for texts in pair]).astype(
                np.float64
            )
            z, ZZ = z + Z.sum(axis=0), ZZ + Z.T @ Z
        x, y = np.split(z / n, 2)
        C, E = ZZ / n - np.outer(z, z) / n**2, len(x)
        whiten_X, whiten_Y = _whitening(C[:E, :E], ridge), _whitening(C[E:, E:], ridge)
        left, correlations, right = np.linalg.svd(whiten_X @ C[:E, E:] @ whiten_Y)
        scale = np.sqrt(correlations[:dimension])
        project_X = whiten_X @ left[:, :dimension] * scale
        project_Y = whiten_Y @ right[:dimension].T * scale
        arrays = vectors @ project_X, vectors @ project_Y, weights, x @ project_X, y @ project_Y
        return cls(*(array.astype(np.float32) for array in arrays))

    def contexts(self, texts):
        """Unit vectors of contexts, `Sequences` of word ids, float32 `(texts, D)`; zeros where no
        word is known.
        """
        return self._vectors(texts, self.context_words, self.context_mean)

    def responses(self, texts):
        """Unit vectors of responses, as in `contexts`."""
        return self._vectors(texts, self.response_words, self.response_mean)

    def _vectors(self, texts, table, mean):
        weighted = _weighted_mean(texts, self.weights)
        x = np.where(np.diff(weighted.indptr)[:, None] > 0, weighted @ table - mean, 0.0)
        return (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def save(self, path):
        np.savez(path, **dataclasses.asdict(self))

    @classmethod
    def load(cls, path):
        with np.load(path, allow_pickle=False) as arrays:
            return cls(**arrays)


def _weighted_mean(texts, weights):
    """A sparse matrix that maps word vectors to the weighted means of texts; zeros for a text
    without weight.
    """
    text, word = texts.owners(), texts.flat()
    total = np.bincount(text, weights=weights[word], minlength=len(texts))
    data = weights[word] / np.maximum(total, 1e-6)[text]
    mean = scipy.sparse.csr_matrix(
        (data.astype(np.float32), (text, word)), (len(texts), len(weights))
    )
    mean.eliminate_zeros()
    return mean


def _whitening(C, ridge):
    """`C^(-1/2)` of a covariance, which is 0 where all texts are the same."""
    values, directions = np.linalg.eigh(C + ridge * np.trace(C) / len(C) * np.eye(len(C)))
    return (directions / np.sqrt(np.maximum(values, 1e-9))) @ directions.T

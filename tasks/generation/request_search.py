"""Searches the replies to requests of users, which may each ask for another kind of search."""

import collections
import functools
from typing import NamedTuple

import keras
import numpy as np

from colloquy.data.sequences import stack
from colloquy.models.decoding import Decoding, put_new_replies_first
from colloquy.tasks.generation import search
from colloquy.tasks.generation.reader import EncodedTurns, pad_earlier_replies

# Most words of a reply. Searches are compiled for this length, so one serves all shorter ones.
LONGEST = 100


class Request(NamedTuple):
    """A conversation, and how its reply is searched."""

    encoded: EncodedTurns
    decoding: Decoding
    seed: int | None


class RequestSearch:
    """Searches with a model; several threads may call it at once.

    Args:
        model: `models.seq2seq.Seq2Seq`.
    """

    def __init__(self, model):
        # Compiles the search of a `SearchShape` once.
        self.decoder_of_shape = functools.cache(functools.partial(search.compile_decoder, model))
        # NumPy's generators have a lock, so several threads may draw from one.
        self._rng = np.random.default_rng(1)

    def find(self, requests):
        """Returns the replies to each request, `(ids, scores)` as `models.decoding.decode` does."""
        # One compiled search serves the requests of one shape together.
        places_by_shape = collections.defaultdict(list)
        for place, request in enumerate(requests):
            shape = search.search_shape(request.decoding, LONGEST)
            places_by_shape[shape].append(place)

        replies = [None] * len(requests)
        for shape, places in places_by_shape.items():
            ids, scores = self._search([requests[place] for place in places], shape)
            for row, place in enumerate(places):
                replies[place] = (ids[row], scores[row])
        return replies

    def _search(self, requests, shape):
        """Searches the replies to requests of one shape; those given before come last."""
        conversations = [request.encoded for request in requests]
        decodings = [request.decoding for request in requests]
        inputs = {
            "source": stack([encoded.source for encoded in conversations]),
            **search.decoding_inputs(decodings),
        }
        if shape.sample:
            inputs["noise"] = self._noise(requests, shape)
        ids, scores = self.decoder_of_shape(shape).predict_on_batch(inputs)
        max_lengths = [decoding.max_length for decoding in decodings]
        earlier_ids = pad_earlier_replies(conversations, max_lengths, shape.reply_length)
        ids, scores = put_new_replies_first(ids, scores, earlier_ids)
        return keras.ops.convert_to_numpy(ids), keras.ops.convert_to_numpy(scores)

    def _noise(self, requests, shape):
        """The random numbers of sampling; those of a request with a seed depend on it alone."""
        noise_shape = (len(requests), shape.num_beams, shape.reply_length)
        noise = self._rng.random(noise_shape, np.float32)
        for row, request in enumerate(requests):
            if request.seed is not None:
                rng = np.random.default_rng(request.seed)
                noise[row] = rng.random(noise_shape[1:], np.float32)
        return noise

"""MMI-antiLM (Li et al. 2016): replies that would answer anything get lower scores."""

from keras import ops, tree


class AntiLM:
    """A seq2seq model whose logits are `log p(word | source) - weight log p(word | empty source)`.

    The decoder has two states, after the source and after an empty one, and takes two steps for
    each word. States and caches are pairs.

    Args:
        model: `models.seq2seq.Seq2Seq`.
        weight: Float `(rows, 1)`, for the rows of words in `step`.
        eos_id: Id of `_EOS_`, the only word of the empty source.
    """

    def __init__(self, model, weight, eos_id):
        self.model = model
        self.weight = weight
        self.eos_id = eos_id
        self.begin_id = model.begin_id

    def encode(self, source):
        """As `Seq2Seq.encode`, but the states are a pair of lists, and so is the cache."""
        B = ops.shape(source)[0]
        states, cache = self.model.encode(source)
        empty_source = ops.full((1, 1), self.eos_id, "int32")
        of_one_source = self.model.encode(empty_source)
        empty_states, empty_cache = tree.map_structure(
            lambda x: ops.repeat(x, B, axis=0), of_one_source
        )
        return (states, empty_states), (cache, empty_cache)

    def step(self, words, states, cache):
        """As `Seq2Seq.step`, with pairs of states and caches; the weights are the source's."""
        source_states, empty_states = states
        source_cache, empty_cache = cache
        logits, source_states, weights = self.model.step(words, source_states, source_cache)
        empty_logits, empty_states, _ = self.model.step(words, empty_states, empty_cache)
        log_p = ops.log_softmax(ops.cast(logits, "float32"))
        empty_log_p = ops.log_softmax(ops.cast(empty_logits, "float32"))
        return log_p - self.weight * empty_log_p, (source_states, empty_states), weights

"""`benchmarks.ledger`: operations and parts of a profile."""

import numpy as np
import tensorflow as tf

from benchmarks.ledger import fractions_by_part, ledger_block, training_gflop
from models import MODELS
from models.seq2seq import Seq2SeqConfig


def test_parts_of_a_profile_are_those_of_the_operations_that_ran():
    x = tf.constant(np.ones((300, 300), "float32"))
    product = tf.function(lambda: tf.sin(tf.linalg.matmul(x, x)) + tf.gather(x, [0, 1])[0])
    product()
    fractions = fractions_by_part(product)
    assert next(iter(fractions)) == "dense layers" and {"moved memory", "element-wise and sums"} <= {*fractions}
    assert not {"convolutions", "optimizer"} & {*fractions} and abs(sum(fractions.values()) - 1) < 1e-9


def test_the_fraction_is_that_of_needed_arithmetic():
    def block():
        tf.reduce_sum(tf.ones((7, 3))).numpy()
        return 7.5

    row = ledger_block(block, 190.0)
    assert abs(row["fraction of the limit"] - row["needed GFLOP/s"] / 190.0) < 1e-9


def test_a_training_needs_each_product_of_a_real_word_three_times():
    config = Seq2SeqConfig(vocabulary_size=11, embedding_dim=3, hidden=4, attention="luong_dot")
    model = MODELS["seq2seq"].build(config)
    inputs = {"source": np.array([[5, 6, 0]]), "target_in": np.array([[12, 5, 6, 0]])}
    encoder, decoder, logits = 2 * (3 + 2) * 6, (3 + 4) * 12 + 8 * 4, 4 * 12
    biases = 2 * 2 * 6, 2 * 12  # Keras's GRU has two in one matrix
    expected = 2 * (encoder + biases[0]) + 3 * (decoder + biases[1] + logits)
    assert abs(training_gflop("seq2seq", model.weights, inputs) / 6e-9 - expected) < 1e-6

"""`benchmarks.ledger`: operations and parts of a profile."""

import numpy as np
import tensorflow as tf

from benchmarks.ledger import fractions_by_part, ledger_block


def test_parts_of_a_profile_are_those_of_the_operations_that_ran():
    x = tf.constant(np.ones((300, 300), "float32"))
    product = tf.function(lambda: tf.sin(tf.linalg.matmul(x, x)) + tf.gather(x, [0, 1])[0])
    product()
    fractions = fractions_by_part(product)
    assert next(iter(fractions)) == "dense layers" and {"moved memory", "element-wise and sums"} <= {*fractions}
    assert not {"convolutions", "optimizer"} & {*fractions} and abs(sum(fractions.values()) - 1) < 1e-9


def test_training_needs_three_times_the_arithmetic_of_ranking():
    def block():
        tf.reduce_sum(tf.ones((7, 3))).numpy()
        return 7

    training, ranking = (ledger_block(block, 190.0, training) for training in (True, False))
    assert abs(ranking["GFLOP per pair"] - 0.228) < 1e-9
    assert abs(training["GFLOP per pair"] - 3 * 0.228) < 1e-9
    for row in (training, ranking):
        limit = 190.0 / row["GFLOP per pair"]
        assert abs(row["fraction of the limit"] - row["pairs per second"] / limit) < 1e-9

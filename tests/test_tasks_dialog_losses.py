"""`tasks.dialog.losses` and the optimizer against loops."""

import numpy as np
import pytest

from tasks import TASKS
from tasks.dialog.losses import margin_loss, softmax_loss
from tasks.dialog.task import Training

dialog = TASKS["dialog"]


B, T, C = 2, 3, 5


# === Losses ===


def padded_batch(seed):
    """Answers with padded turns, whose logits would weigh most, and logits."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, C, (B, T))
    answers[0, 2] = answers[1, 1] = answers[1, 2] = -1
    logits = rng.normal(0.0, 2.0, (B, T, C)).astype("float32")
    logits[answers < 0] *= 50
    return answers, logits


def losses_of(each, answers, logits):
    """`each(right, logits of a turn)`, averaged over the real turns."""
    found = [each(answers[b, t], logits[b, t]) for b in range(B) for t in range(T) if answers[b, t] >= 0]
    assert len(found) == 3
    return sum(found) / 3


@pytest.mark.parametrize("seed", range(3))
def test_softmax_loss_matches_loops(seed):
    answers, logits = padded_batch(seed)
    expected = losses_of(lambda right, f: -np.log(np.exp(f[right]) / sum(np.exp(f))), answers, logits.astype("float64"))
    assert float(np.mean(softmax_loss(answers, logits))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("margin", [0.1, 1.7])
@pytest.mark.parametrize("seed", range(3))
def test_margin_loss_matches_loops(seed, margin):
    def each(right, f):
        return sum(max(0.0, margin - f[right] + f[y]) for y in range(C) if y != right)

    answers, logits = padded_batch(seed)
    expected = losses_of(each, answers, logits)
    assert float(np.mean(margin_loss(answers, logits, margin))) == pytest.approx(expected, rel=1e-5)


def test_margin_loss_of_a_clear_answer_is_nothing():
    logits = np.array([[[0.0, 2.0, 1.8]]], "float32")
    assert float(margin_loss(np.array([[1]]), logits, 0.1)[0]) == pytest.approx(0.0, abs=1e-6)
    assert float(margin_loss(np.array([[1]]), logits, 0.5)[0]) == pytest.approx(0.3, rel=1e-5)


def test_losses_of_padding_alone_are_zero():
    answers, logits = np.full((B, T), -1), np.ones((B, T, C), "float32")
    assert not np.any(softmax_loss(answers, logits)) and not np.any(margin_loss(answers, logits, 0.1))


def test_loss_is_the_one_that_the_settings_name():
    answers, logits = padded_batch(0)
    np.testing.assert_array_equal(dialog.loss(Training())(answers, logits), softmax_loss(answers, logits))
    chosen = dialog.loss(Training(loss="margin", margin=1.7))
    np.testing.assert_array_equal(chosen(answers, logits), margin_loss(answers, logits, 1.7))


def test_the_parts_of_a_batch_count_their_real_turns():
    answers, logits = padded_batch(0)
    whole = float(np.mean(softmax_loss(answers, logits)))
    parts = [
        (dialog.loss_counts(part).sum(), np.mean(softmax_loss(part, f)))
        for part, f in zip(np.split(answers, B), np.split(logits, B), strict=True)
    ]
    assert [int(count) for count, _ in parts] == [2, 1]
    assert sum(count * loss for count, loss in parts) / 3 == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize(
    ("field", "value"), [("loss", "hinge"), ("validations_per_epoch", 0.0), ("validations_per_epoch", -1.0)]
)
def test_training_rejects(field, value):
    with pytest.raises(ValueError, match=f"^{field} must be .* Received: {field}={value!r}$"):
        Training(**{field: value})


# === Optimizer ===


def test_learning_rate_decays_linearly_to_a_fraction():
    optimizer = dialog.optimizer(Training(decay=0.25, gradient_clip=3.0), 0.08, 40)
    assert optimizer.global_clipnorm == 3.0
    found = []
    for step in (0, 10, 20, 40, 70):
        optimizer.iterations.assign(step)
        found.append(float(optimizer.learning_rate))
    assert found == pytest.approx([0.08, 0.065, 0.05, 0.02, 0.02], rel=1e-5)


def test_learning_rate_and_gradients_can_stay_as_they_are():
    averaged = dialog.optimizer(Training(ema=0.75), 0.08, 40)
    assert averaged.use_ema and averaged.ema_momentum == 0.75
    optimizer = dialog.optimizer(Training(decay=1.0, gradient_clip=0.0), 0.08, 0)
    assert not optimizer.use_ema
    assert optimizer.global_clipnorm is None
    optimizer.iterations.assign(5)
    assert float(optimizer.learning_rate) == pytest.approx(0.08)

"""Callbacks of Keras in a training of ours, such as those of wandb, MLflow and Optuna."""

from collections.abc import Sequence

import keras


class Callbacks:
    """Calls `keras.callbacks.Callback`s as `fit` does, with a validation in place of an epoch.

    `on_train_batch_end(step, {"loss"})` is called for each step, a few steps later, when the losses
    are read. `on_epoch_begin` and `on_epoch_end(number, logs)` surround the steps up to a
    validation; the logs are its row of the history, with dev's metrics as `val_NAME`, too. A
    callback that sets `model.stop_training` ends the training at the next validation.

    Args:
        callbacks: The callbacks.
        model: The model that is trained.
        steps_per_epoch: For `params` of the callbacks.
    """

    def __init__(
        self,
        callbacks: Sequence[keras.callbacks.Callback],
        model: keras.Model,
        steps_per_epoch: int,
    ) -> None:
        self.model = model
        self.list = keras.callbacks.CallbackList(
            list(callbacks), model=model, steps=steps_per_epoch
        )
        self.validations = 0

    def begin(self) -> None:
        """Before the first step."""
        self.model.stop_training = False
        self.list.on_train_begin()
        self.list.on_epoch_begin(0)

    def after_steps(self, step: int, losses: list[float]) -> None:
        """After some steps, of which `step` is the last, with these losses."""
        for number, loss in enumerate(losses, step - len(losses)):
            self.list.on_train_batch_begin(number)
            self.list.on_train_batch_end(number, {"loss": loss})

    def after_validation(self, row: dict, metrics: dict[str, float], ends: bool) -> bool:
        """After a validation, with its row of the history and its metrics.

        Args:
            ends: True if no step follows.

        Returns:
            True if a callback asks for the end.
        """
        logs = dict(row)
        for name in metrics:
            logs[f"val_{name}"] = row[name]
        self.list.on_epoch_end(self.validations, logs)
        self.validations += 1
        if self.model.stop_training:
            return True
        if not ends:
            self.list.on_epoch_begin(self.validations)
        return False

    def end(self) -> None:
        """After the last step."""
        self.list.on_train_end()

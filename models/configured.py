"""Models made of a config: saving, loading and cloning keep their class, config and dtype policy."""

import keras


class ConfiguredModel(keras.Model):
    """Base class of the models: functional Keras, built from a config.

    A subclass names its `Config` and defines `network(config)`, the equations of its paper: it returns inputs and
    outputs as `keras.Model` takes them.

    Args:
        config: A `Config` of the subclass. `keras.models.clone_model` gives inputs and outputs instead.
        dtype: Dtype policy of all layers; `None`: the global one.
        name: Name of the model.
    """

    Config = None

    def __init__(self, *args, dtype=None, **kwargs):
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(dtype or before)
        try:
            if len(args) == 1:
                [config] = args
                inputs, outputs = self.network(config)
                args = inputs, CarriedConfig(config.model_dump_json(), name="config")(outputs)
            super().__init__(*args, **kwargs)
        finally:
            keras.config.set_dtype_policy(before)
        self.config = self.Config.model_validate_json(self.get_layer("config").text)

    def avoid_fast_paths(self):
        """Makes layers compute as XLA can compile them: without operations that it lacks, padding included."""
        for layer in self._flatten_layers():
            if getattr(layer, "fast", False):
                layer.fast, layer.supports_jit = False, True

    @keras.Model.jit_compile.setter
    def jit_compile(self, value):
        if value:
            self.avoid_fast_paths()
        keras.Model.jit_compile.fset(self, value)

    def get_config(self):
        policy = self.get_layer("config").dtype_policy
        return {"config": self.config.to_json(), "dtype": policy.name, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(cls.Config.of(config["config"]), dtype=config.get("dtype"), name=config["name"])


@keras.saving.register_keras_serializable("colloquy")
class CarriedConfig(keras.layers.Layer):
    """Passes logits on and carries the model's config as JSON: `keras.models.clone_model` copies layers alone."""

    def __init__(self, text, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.text = text

    def call(self, logits):
        return logits

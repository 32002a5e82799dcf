"""Models made of a config: saving and loading keep their class, config and dtype policy."""

import keras


class ConfiguredModel(keras.Model):
    """Base class of the models: functional Keras, built from a config.

    A subclass names its `Config` and defines `network(config)`, the equations of its paper: it
    returns inputs and outputs as `keras.Model` takes them.

    `keras.models.clone_model` rebuilds the layers alone: with the same weights its clone computes
    the same, but it is a plain functional model, without `config` and methods of the subclass.
    `type(model).from_config(model.get_config())` copies the class, too.

    Args:
        config: A `Config` of the subclass.
        dtype: Dtype policy of all layers; `None`: the global one.
        name: Name of the model.
    """

    Config = None

    def __init__(self, config, dtype=None, **kwargs):
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(dtype or before)
        try:
            super().__init__(*self.network(config), **kwargs)
        finally:
            keras.config.set_dtype_policy(before)
        self.config = config

    def word_vectors(self):
        """The word vectors, float32 `(rows, D)`; row 0 is padding."""
        [table] = self.get_layer("word_embedding").get_weights()
        return table

    def set_word_vectors(self, vectors):
        """Sets the word vectors to those of a dataset, float32 `(rows, D)`."""
        self.get_layer("word_embedding").set_weights([vectors])

    def avoid_fast_paths(self):
        """Has all layers avoid operations that XLA cannot compile."""
        for layer in self._flatten_layers():
            if getattr(layer, "fast", False):
                layer.fast = False
                layer.supports_jit = True

    @keras.Model.jit_compile.setter
    def jit_compile(self, value):
        if value:
            self.avoid_fast_paths()
        keras.Model.jit_compile.fset(self, value)

    def get_config(self):
        return {"config": self.config.to_json(), "dtype": self.dtype_policy.name, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(cls.Config.of(config["config"]), dtype=config.get("dtype"), name=config["name"])

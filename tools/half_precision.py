"""A file of weights in half precision."""

import h5py
import numpy as np

from base.files import UserError


def halve(source, target):
    """Copies a file of weights with every float32 array in float16, compressed, without an optimizer's state.

    Args:
        source: A `.weights.h5` of Keras.
        target: The new file.

    Raises:
        UserError: where a weight is beyond what float16 holds.
    """
    with h5py.File(source) as full, h5py.File(target, "w") as half:

        def copy(name, item):
            if name.split("/")[0] == "optimizer":  # Keras writes it too, and nobody reads it
                return
            if isinstance(item, h5py.Group):
                copied = half.require_group(name)
            else:
                values = item[()]
                if values.dtype == np.float32:
                    if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
                        raise UserError(f"{source}: {name} has values beyond half precision")
                    values = values.astype(np.float16)
                packed = {"compression": "gzip", "shuffle": True} if values.ndim else {}
                copied = half.create_dataset(name, data=values, **packed)
            copied.attrs.update(item.attrs)

        half.attrs.update(full.attrs)
        full.visititems(copy)

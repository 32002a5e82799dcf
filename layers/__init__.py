"""One mechanism per file.

Layers know nothing of data, files or training, and import `keras` only.
"""

from colloquy.base.runtime import check_backend

# Every layer imports Keras, so a wrong backend is refused here, in one sentence.
check_backend()


def check_choice(name, value, known):
    """Raises a `ValueError` if an argument is not one of its known values."""
    if value not in known:
        raise ValueError(f"{name} must be one of {known}. Received: {name}={value!r}")

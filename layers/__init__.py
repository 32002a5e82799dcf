"""One mechanism per file.

Layers know nothing of data, files or training, and import `keras` only.
"""


def check_choice(name, value, known):
    """Raises a `ValueError` if an argument is not one of its known values."""
    if value not in known:
        raise ValueError(f"{name} must be one of {known}. Received: {name}={value!r}")

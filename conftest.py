"""What doctests see without importing it."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def names_in_doctests(doctest_namespace):
    doctest_namespace.update(np=np, keras=keras)

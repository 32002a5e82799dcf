"""tests/mutations.py: every fault can still be put in."""

import pytest

from tests.mutations import MUTATIONS, ROOT


@pytest.mark.parametrize("file", MUTATIONS)
def test_what_a_mutation_changes_is_there_once(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    for old, new, tests in MUTATIONS[file]:
        assert text.count(old) == 1 and new != old, old
        assert (ROOT / "tests" / f"test_{tests.split()[0]}").is_file()

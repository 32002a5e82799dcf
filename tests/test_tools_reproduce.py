"""tools/reproduce.py: a published model has the scores that its card claims."""

import pytest
from helpers import ROOT, ran

from base.files import UserError
from tools.reproduce import PUBLISHED, compare


def test_every_published_model_has_a_name():
    assert sorted(PUBLISHED.values()) == sorted(path.parent.name for path in ROOT.glob("pretrained/*/config.json"))


def test_differences_beyond_rounding_are_an_error(capsys):
    compare({"dev": {"EM": 0.67058, "perplexity": 28.4536}}, {"dev": {"EM": 0.67061, "perplexity": 28.4630}})
    assert "| dev | perplexity | 28.4536 | 28.4630 |\n" in capsys.readouterr().out
    with pytest.raises(UserError, match="1 of 2 scores differ"):
        compare({"dev": {"EM": 0.6706, "F1": 0.7664}}, {"dev": {"EM": 0.6712, "F1": 0.7664}})
    assert "| dev | EM | 0.6706 | 0.6712 | differs |" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT.parent / "shared" / "data").exists(), reason="the corpora are not here")
def test_a_published_model_is_reproduced():
    done = ran("tools/reproduce.py", "--model=memma")
    assert "| dev | per_response | 0.6324 | 0.6324 |\n" in done.stdout

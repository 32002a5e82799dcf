"""Settings of the search for replies, as texts: `beam=5,length_penalty=1`."""

import functools
from typing import Annotated, Self

from pydantic import Field, model_validator

from colloquy.base.config import Config, make_config, parse_assignments
from colloquy.engine.run import CONFIG
from colloquy.models.decoding import Decoding


class Options(Config):
    """Settings of the search for replies."""

    decode: str = ""
    """`field=value,...` of `models.decoding.Decoding`; empty: greedy search to score, the run's own
    search to answer."""
    reverse_run: str = ""
    """Run of a reverse model, which chooses among the replies found."""
    reverse_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Weight of the reverse model's score."""

    @model_validator(mode="after")
    def _check_search(self) -> Self:
        parse_decoding(self.decode, "decode")
        if "reverse_weight" in self.model_fields_set and not self.reverse_run:
            raise ValueError("reverse_weight needs reverse_run")
        return self


@functools.lru_cache(maxsize=64)
def parse_decoding(text, name="--decode"):
    """Makes a `Decoding` of `field=value,...`.

    Raises:
        UserError: It is anything else. The message calls it `name`.
    """
    assignments = [part.strip() for part in (text or "").split(",") if part.strip()]
    return make_config(Decoding, parse_assignments(assignments, name), f"{name}: ")


def decoding_of(run):
    """The `Decoding` of a run where nobody names one: `decode` of its `config.json`, or greedy.

    Another `decode` than `parse_decoding` takes is a `UserError`.
    """
    return parse_decoding(run.record.get("decode"), f"{run.path / CONFIG}: decode")


def decoding_text(decoding):
    """The fields in which a `Decoding` differs from greedy search, as `parse_decoding` takes them.

    >>> decoding_text(parse_decoding("beam=5,block_ngrams=3")), decoding_text(Decoding())
    ('beam=5, block_ngrams=3', '')
    """
    greedy = Decoding()
    changes = []
    for name, value in decoding:
        if value != getattr(greedy, name):
            changes.append(f"{name}={value}")
    return ", ".join(changes)

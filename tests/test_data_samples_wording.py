import re

import pytest

from data.samples import wording


def test_sections_keys_and_options_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(wording, "TEXTS", tmp_path)
    text = "# Of no account: a / b\n\n[first]\na key: One: 1 / Two, /\n    three. / -\n\n# Nor this.\n[second]\nb: 5\n"
    (tmp_path / "some.txt").write_text(text)
    assert wording.read("some") == {"first": {"a key": ("One: 1", "Two,", "three.", "")}, "second": {"b": ("5",)}}


@pytest.mark.parametrize("name", [path.stem for path in wording.TEXTS.glob("*.txt")])
def test_options_are_distinct_sentences_of_known_fields(name):
    known = {"name", "other", "other_dish", "place", "phone", "address", "chef", "rating", "since", "dish"}
    known |= {"value", "old", "craving", "hint", "wanted", "when", "", *wording.SLOTS["asks"], "cuisine"}
    for section, table in wording.read(name).items():
        for key, options in table.items():
            assert len(set(options)) == len(options), (section, key)
            for option in options:
                assert option == option.strip() and "/" not in option and "\n" not in option
                assert set(re.findall(r"{(.*?)}", option)) <= known, option


def test_topics_have_scenes():
    assert set(wording.TOPICS) == {"weather", "hobby", "travel", "treat", "occasion", "pets"}
    assert wording.TOPICS["hobby"].kin == ("travel", "pets", "treat")
    assert wording.TOPICS["weather"].scenes["rain"].replies[2] == "Rubber boots would help."
    assert all(len(topic.scenes) >= 3 for topic in wording.TOPICS.values())

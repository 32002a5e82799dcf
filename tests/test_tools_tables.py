"""tools/tables.py: the README's figures are those of results/measured."""

from metrics.tables import read_record
from tools.tables import MEASURED, README, curve, render, samples, table


def record(name, seed, value, **more):
    figures = {"seconds": 120, "metrics": {"R10@1": value}, "baselines": {}}
    return {"name": name, "corpus": "x", "seed": seed, **figures, **more}


def test_the_readme_is_up_to_date():
    text = README.read_text(encoding="utf-8")
    assert "<!-- table: ubuntu-irc" in text
    assert render(text) == text, "run: python -m tools.tables"


def test_rows_are_sorted_and_seeds_averaged():
    rows = table([record("a", 1, 0.2), record("b", 1, 0.5), record("b", 2, 0.7)]).splitlines()[2:]
    assert rows == ["| b | | .600 ± .141 | | | | | 1, 2 | 2 |", "| a | | .200 | | | | | 1 | 2 |"]


def test_every_measured_file_says_how_to_get_it_again():
    files = sorted(MEASURED.glob("*.json"))
    assert files
    for file in files:
        found = read_record(file)
        needed = {"name", "model", "corpus", "split", "settings", "command", "seed", "hardware", "seconds", "commit"}
        assert needed | {"metrics", "baselines", "history"} <= found.keys(), file.name
        assert found["command"].startswith("python "), file.name


def test_replies_found_by_another_search_have_their_own_row():
    figures = {"seconds": 60, "baselines": {}, "corpus": "x", "task": "generation", "name": "a", "seed": 1}
    found = [
        {**figures, "metrics": {"perplexity": 30.0, "BLEU-1": 0.1}},
        {**figures, "metrics": {"perplexity": 30.0, "BLEU-1": 0.1}, "search": "greedy", "seed": 2},
        {**figures, "metrics": {"perplexity": 31.0, "BLEU-1": 0.2}, "search": "beam of 5", "baselines": {"f": {}}},
    ]
    rows = [row.split("|")[1].strip() for row in table(found).splitlines()[2:]]
    assert rows == ["a", "a, beam of 5", "*baseline: f*"]
    assert "| 1, 2 |" in table(found)


def test_a_curve_at_some_steps_stands_beside_the_published_one():
    rows = [
        {"step": step, "epoch": step / 100, "loss": loss, "seconds": 60.0, "perplexity": 9.0}
        for step, loss in ((500, 5.0), (600, 4.5), (1000, 4.0))
    ]
    shown = curve({"task": "generation", "corpus": "cornell", "history": rows}, [500, 1000]).splitlines()
    assert shown[0] == "| steps | loss | *published: PyTorch chatbot tutorial* | perplexity | minutes |"
    assert shown[2:] == ["| 500 | 5.00 | 3.77 | 9.00 | 1 |", "| 1,000 | 4.00 | 3.47 | 9.00 | 1 |"]


def test_samples_have_a_column_a_search():
    pair = {"source": "a | b", "target": "c ."}
    records = [
        {"unit": "words", "search": search, "samples": [{**pair, "reply": reply}]}
        for search, reply in (("greedy", "x"), ("beam of 5", "y !"))
    ]
    assert samples(records).splitlines()[0] == "| what was said | greedy | beam of 5 | what a human answered |"
    assert samples(records).splitlines()[2] == "| a \\| b | x | y! | c. |"


def test_models_are_shown_or_left_out_by_a_word(monkeypatch):
    records = [record("a of 5 units", 1, 0.2), record("a, no b", 1, 0.5)]
    monkeypatch.setattr("tools.tables.measured", lambda corpus: records)
    for option, kept, gone in (("only=b", "| a, no b |", "| a of 5"), ("without=b", "| a of 5 units |", "| a, no")):
        shown = render(f"<!-- table: x {option} -->\n<!-- end -->")
        assert kept in shown
        assert gone not in shown

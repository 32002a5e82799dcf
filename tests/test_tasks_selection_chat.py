"""chat.py for selection: answers of an index, and the user's own."""

import io

import pytest
from helpers import run_script

from base.files import UserError
from serving.models import open_model
from tasks.selection.chat import SelectionChat
from tasks.selection.retrieval.answers import answers_of, ranked
from tasks.selection.retrieval.index import Hit, RetrievalIndex

QUESTION = "what can you tell me about the town ?"


@pytest.fixture
def chat(selection_predictor, selection_index):
    return SelectionChat(selection_predictor, index=selection_index)


def test_the_chat_says_the_best_answer_and_remembers_it(chat, selection_predictor, selection_index):
    index = RetrievalIndex(selection_index, selection_predictor.vocabulary)
    assert chat.reply("  ") == [] and chat.said == []
    [said] = chat.reply(QUESTION)
    assert said == answers_of(selection_predictor, index, [QUESTION])[0].text
    assert chat.said == [QUESTION, said]
    [then] = chat.reply("and the market ?")
    assert then == answers_of(selection_predictor, index, [QUESTION, said, "and the market ?"])[0].text
    chat.reset()
    assert chat.said == [] and chat.more() == "Say something first."
    assert chat.reply("zork zork") == ["[The index has no response with these words.]"]
    assert chat.more() == chat.explain() == "Say something first."


def test_more_shows_scores_and_sources(chat):
    chat.reply(QUESTION)
    lines = chat.more("3").split("\n")
    assert len(lines) == 6
    for place, (line, source) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        answer = chat.found[place]
        assert line == f"{place + 1:3}  {answer.total:6.2f}  {answer.text}"
        assert source.strip().startswith("said to: ") and answer.context[-1] in source
        assert all(f"{search} {n}" in source for search, n in answer.places.items())
    assert len(chat.more().split("\n")) == 10
    assert chat.more("x") == chat.more("0").replace("0", "x") == "/more expects how many answers to show. Received: x"


def test_explain_shows_the_best_match_of_each_word(chat):
    [said] = chat.reply(QUESTION)
    lines = chat.explain().split("\n")
    assert [line.split()[0] for line in lines[:-1]] == said.split()[-5:]  # what the model reads
    assert "(turn 1)" in lines[0]


def test_own_answers_are_ranked(selection_predictor, tmp_path):
    file = tmp_path / "answers.txt"
    file.write_text("yes\n\n\u3000\n  no thank you\nthe town is old\n", encoding="utf-8")
    chat = SelectionChat(selection_predictor, candidates=file)
    [said] = chat.reply(QUESTION)
    best = ranked(selection_predictor, [QUESTION], [Hit(text) for text in ("yes", "no thank you", "the town is old")])
    assert said == best[0].text
    assert chat.more().split("\n") == [f"{i:3}  {a.total:6.2f}  {a.text}" for i, a in enumerate(best, 1)]


@pytest.mark.parametrize(("content", "message"), [(None, "readable text file"), (b"\n \n", "an answer per line")])
def test_a_file_without_answers_is_refused(selection_predictor, tmp_path, content, message):
    file = tmp_path / "answers.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=rf"answers.txt.*: expected .*{message}"):
        SelectionChat(selection_predictor, candidates=file)


def test_script_answers_from_an_index(trained_selection, selection_index, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("what can you tell me ?\n/more 1\n\n/quit\n"))
    done = run_script("chat.py", f"--run={trained_selection.path}", f"--index={selection_index}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    assert "said to: " in done.stdout and "/more N" in done.stdout
    for flags in ([], [f"--index={selection_index}", "--candidates=x"]):
        done = run_script("chat.py", f"--run={trained_selection.path}", *flags)
        assert done.returncode == 1
        assert "give --index=DIR (tools.build_index) or --candidates=FILE" in done.stderr


def test_a_model_that_came_with_pairs_is_talked_to_and_served(run_with_pairs, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{QUESTION}\n"))
    done = run_script("chat.py", f"--run={run_with_pairs}")
    assert done.returncode == 0 and done.stdout.count("bot: ") == 1
    assert open_model("dam", run_with_pairs).metadata["responses"] > 9

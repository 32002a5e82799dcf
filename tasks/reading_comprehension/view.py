"""Examples of reading comprehension as a model sees them."""

from data.corpora.squad import tokenize
from data.vocabulary import UNK_ID
from engine.view import Line, Word


def count(split):
    """How many questions a split has."""
    return len(split)


def lines_of(dataset, split, number, settings):
    """A passage and a question, see `engine.view.Line`: words without a vector are still read by letters."""
    questions = dataset.splits[split]
    context = questions.context[number]
    limits = settings["max_context"], settings["max_question"]
    answer = {place for first, last in questions.spans[number] for place in range(first, last + 1)}
    parts = (
        ("passage", questions.texts[context], questions.contexts, context, limits[0], answer),
        ("question", questions.question_texts[number], questions.questions, number, limits[1], ()),
    )
    lines = []
    for label, text, sequences, row, limit, marked in parts:
        start = sequences.starts[row]
        ids = questions.tokens.words[sequences.ids[start : start + sequences.lengths[row]]].tolist()
        words = [
            Word(text[i:j], id != UNK_ID, place < limit, place in marked)
            for place, ((i, j), id) in enumerate(zip(tokenize(text), ids, strict=True))
        ]
        lines.append(Line(label, words))
    return lines

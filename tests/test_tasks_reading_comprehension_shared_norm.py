"""`tasks.reading_comprehension.second_contexts` and `batches`: questions without an answer."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from bidaf_models import batch, fresh, in_loops, made, real
from helpers import refusal
from keras import ops

from colloquy.base.config import make_config
from colloquy.data.offsets import tokenize
from colloquy.data.sequences import Sequences
from colloquy.data.vocabulary import Vocabulary
from colloquy.engine.limits import describe_exceeded
from colloquy.models.bidaf import BiDAFConfig
from colloquy.tasks import TASKS
from colloquy.tasks.reading_comprehension.added_sentences import add_sentences, by_added_sentence
from colloquy.tasks.reading_comprehension.batches import TwoContexts, ask_twice
from colloquy.tasks.reading_comprehension.data import ReadingSplit
from colloquy.tasks.reading_comprehension.losses import shared_norm_loss
from colloquy.tasks.reading_comprehension.misleading import MisleadingSentences
from colloquy.tasks.reading_comprehension.passages import Passage, with_sentence, without_answer
from colloquy.tasks.reading_comprehension.second_contexts import (
    SecondContexts,
    sentences_of,
    sentences_to_add,
)
from colloquy.tasks.reading_comprehension.tokens import Tokens

reading = TASKS["reading_comprehension"]
NO_ANSWER = BiDAFConfig(vocabulary_size=1, characters=1, no_answer=True)
TEXTS = [
    "Ann lives in Rome and works in Bern.",
    "Ann works in a mill. She lives near a lake there.",
    "Ann lives in Rome, too. It is warm.",
    "Nothing is said here.",
    "Where Ann lives nobody knows.",
]


@pytest.fixture
def split():
    """Two questions on the first of four paragraphs of an article, one on another article."""
    texts = [*TEXTS, "Where does Ann live?", "Where does she work?", "Who knows?"]
    numbers = {}
    tokens = []
    for text in texts:
        words = [text[start:end] for start, end in tokenize(text)]
        tokens.append([numbers.setdefault(word, len(numbers) + 1) for word in words])
    # A frequent word has an id up to 200; here none is.
    vocabulary = Vocabulary.of([f"frequent{i}" for i in range(200)] + [w.lower() for w in numbers])
    return ReadingSplit(
        tokens=Tokens.of(list(numbers), vocabulary, Vocabulary.of("abc")),
        contexts=Sequences.of(tokens[:5]),
        texts=TEXTS,
        offsets=Sequences.of([np.ravel(tokenize(text)).tolist() for text in TEXTS]),
        articles=np.array([1, 1, 1, 1, 2]),
        ids=["live", "work", "knows"],
        context_of_question=np.array([0, 0, 4]),
        questions=Sequences.of(tokens[5:]),
        answers=[["Rome"], ["Bern"], ["nobody"]],
        spans=[[[3, 3]], [[7, 7]], [[3, 3]]],
        question_texts=texts[5:],
    )


def with_questions_on_all(split):
    """Every paragraph has a question, so that each may be a second context."""
    rows = np.array([0, 1, 0, 0, 2])
    spans = [[[3, 3]], [[0, 0]], [[0, 0]], [[0, 0]], [[3, 3]]]
    asked = split.asked_of(rows, np.arange(5))
    return dataclasses.replace(asked, spans=spans, ids=list("abcde"))


def test_second_contexts_share_words_and_have_no_answer(split):
    second_contexts = SecondContexts(with_questions_on_all(split))
    # The paragraph about Rome has the answer; the mill's shares "Ann", the next nothing.
    assert second_contexts.of_same_article(0) == [1, 3]
    assert second_contexts.of_other_articles(0) == 4
    assert second_contexts.of_same_article(4) == []


def test_the_added_sentence_shares_most_words(split):
    asked = with_questions_on_all(split)
    added = sentences_to_add(asked)
    [mill] = split.contexts.lists([1])
    assert added[0] == mill[:6]  # of the mill's first and second, the one with Ann
    assert added[4] == []
    assert sentences_of(split, 1) == [mill[:6], mill[6:13]]


def test_a_question_is_asked_of_its_own_context_and_of_the_second(split):
    training = reading.Training(shared_norm=True)
    asked = ask_twice(split, TwoContexts(np.array([0, 1]), np.array([1, 3]), training, seed=1))
    live, work = split.questions.lists([0, 1])
    assert asked.questions.lists() == [live, live, work, work]
    own, mill, nothing = split.contexts.lists([0, 1, 3])
    assert asked.contexts.lists() == [own, mill, own, nothing]
    assert asked.spans == [[[3, 3]], [], [[7, 7]], []]


def test_the_answer_stays_where_it_is_beside_an_added_sentence(split):
    asked = with_questions_on_all(split)
    mill = 1
    sentence = [90, 91, 92]
    seen = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        passage = with_sentence(asked, mill, Passage(list(range(13)), [[8, 9]]), sentence, rng)
        place = passage.tokens.index(90)
        seen.add(place)
        assert passage.tokens[place : place + 3] == sentence
        [[first, last]] = passage.spans
        assert passage.tokens[first : last + 1] == [8, 9]
    assert seen == {0, 6, 13}  # before, between the two sentences, after


def test_misleading_sentences_have_words_of_the_question_and_not_the_answer(split):
    asked = with_questions_on_all(split)
    drawn = MisleadingSentences(asked)
    texts = split.tokens.texts
    sentences = set()
    for seed in range(40):
        numbers = drawn.draw(0, np.random.default_rng(seed))
        assert numbers == drawn.draw(0, np.random.default_rng(seed))
        words = [texts[number] for number in numbers]
        assert words[-1] == "."
        assert "?" not in words
        sentences.add(" ".join(words))
    assert "Ann works in a mill Where does Ann live ." in sentences
    assert any(sentence.startswith("Where does Ann live ") for sentence in sentences)
    assert len(sentences) > 10
    assert drawn.draw(4, np.random.default_rng(0)) == []  # the other article has one paragraph


def test_a_removed_answer_is_in_no_other_sentence(split):
    asked = with_questions_on_all(split)
    mill = split.contexts.lists([1])[0]
    lake = dataclasses.replace(asked, spans=[[[10, 10]]] * 5)
    assert without_answer(lake, 1, [7, 8]).tokens == [*mill[:6], 7, 8]
    ann = dataclasses.replace(asked, spans=[[[0, 0]]] * 5)
    assert without_answer(ann, 1, [mill[0]]) is None


def test_a_misleading_sentence_has_the_words_of_the_question(split):
    asked = with_questions_on_all(split)
    rows, misled = add_sentences(asked, [0, 4])
    assert rows == [0] and misled.ids == ["a"]  # the other article has one paragraph
    [text] = misled.texts
    assert text.startswith(f"{TEXTS[0]} ")
    added = text.removeprefix(TEXTS[0])
    sentences = ["Ann works in a mill", "She lives near a lake there", "It is warm"]
    assert any(added == f" {sentence} Where does Ann live ." for sentence in sentences)
    # Offsets point at the tokens, which are those of the words.
    [numbers] = misled.contexts.lists()
    [offsets] = misled.offsets.lists()
    assert offsets == np.ravel(tokenize(text)).tolist()
    [own] = split.contexts.lists([0])
    [question] = split.questions.lists([0])
    assert numbers[: len(own)] == own
    assert numbers[-len(question) : -1] == question[:-1]
    assert misled.answer(0, *misled.spans[0][0]) == "Rome"
    assert add_sentences(asked, [0])[1].texts == misled.texts
    assert "sentences of 5 to 40 words" in refusal(add_sentences, asked, [4])


def test_passages_are_compared_with_and_without_a_misleading_sentence(split, monkeypatch):
    asked = with_questions_on_all(split)
    monkeypatch.setattr(
        "colloquy.tasks.reading_comprehension.added_sentences.score_split",
        lambda model, examples, **options: {"EM": float(examples.texts is asked.texts)},
    )
    groups = by_added_sentence(None, asked)
    assert [group.metrics["EM"] for group in groups] == [1.0, 0.0]
    # The other article has one paragraph.
    assert [group.examples for group in groups] == [4, 4]


def test_shared_norm_loss_is_that_of_all_spans_of_both_contexts():
    logits = np.random.default_rng(0).normal(size=(4, 2, 3)).astype("float32")
    spans = np.array([[[0, 1], [2, 2]], [[-1, -1]] * 2, [[1, 1], [-1, -1]], [[-1, -1]] * 2])

    def weight(row, first, last):
        return np.exp(logits[row, 0, first] + logits[row, 1, last])

    def all_spans(row):
        return sum(weight(row, first, last) for first in range(3) for last in range(3))

    expected = []
    for own, other in ((0, 1), (2, 3)):
        answer = sum(weight(own, *span) for span in spans[own] if span[0] >= 0)
        expected.append(-np.log(answer / (1 + all_spans(own) + all_spans(other))))
        expected.append(-np.log(1 / (1 + all_spans(other))))
    loss = ops.convert_to_numpy(shared_norm_loss(spans, logits))
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"added_sentences": 0.3}, "need shared_norm=true"),
        ({"removed_answers": 0.3}, "need shared_norm=true"),
        ({"shared_norm": True, "question_words": 0.3}, "needs added_sentences above 0"),
    ],
)
def test_settings_that_would_have_no_effect_are_refused(settings, message):
    assert message in refusal(make_config, reading.Training, settings)


def test_batches_have_each_question_twice(split):
    asked = with_questions_on_all(split)
    shares = {"added_sentences": 1.0, "question_words": 0.5, "removed_answers": 0.5}
    training = reading.Training(shared_norm=True, batch_size=2, **shares)
    batches = reading.training_batches(asked, NO_ANSWER, training, np.random.default_rng(0))
    rows = []
    for each in batches:
        inputs, spans = reading.collate(asked, NO_ANSWER, each, length_multiple=1)
        rows += each[0].tolist()
        assert len(inputs["context"]) == len(spans) == 2 * len(each[0])
        assert (spans[1::2] == -1).all()
        assert (spans[::2, 0] >= 0).all()
    assert sorted(rows) == [0, 1, 2, 3]  # the other article has one paragraph
    [sentence] = describe_exceeded(reading.limits(asked, NO_ANSWER, training))
    assert sentence.startswith("1 of 5 questions are left out, since no other context")


@pytest.mark.parametrize(("no_answer", "shared_norm"), [(True, False), (False, True)])
def test_the_option_needs_its_training(no_answer, shared_norm):
    model = fresh(no_answer=no_answer)
    training = reading.Training(shared_norm=shared_norm)
    message = refusal(reading.initialise, model, None, training)
    assert "no_answer of the model and shared_norm of its training" in message


def test_the_option_is_computed_as_published_and_trained():
    model = made(no_answer=True)
    inputs, spans = batch(model)
    logits = ops.convert_to_numpy(model(inputs))
    for row in range(3):
        np.testing.assert_allclose(real(logits[row], row), in_loops(model, row), atol=1e-4)

    inputs, spans = batch(model, rows=(0, 1))
    spans[1] = -1
    with tf.GradientTape() as tape:
        loss = ops.mean(shared_norm_loss(spans, model(inputs)))
    for gradient in tape.gradient(loss, model.trainable_weights):
        assert np.abs(gradient.numpy()).max() > 1e-8

"""Sentences that mislead a model, for training.

Jia and Liang 2017 showed that a model finds its answer in an added sentence that has the words of
the question. Wang and Bansal 2018 showed that training prevents this if the places and the words of
such sentences vary. Here a misleading sentence is one of two:

- A sentence of another passage of the article. The question's words are put at its end, at its
  front or in place of some of its own words.
- The question as a statement. The asking word becomes the answer of another question, and names
  become other names.

For example, for the question "Where does Ann live?":

    The wheel of the mill is Where does Ann live .
    Bern does Bob live .

A text is a list of tokens, which are numbers of the split's `Tokens`.
"""

from colloquy.tasks.reading_comprehension.second_contexts import draw_sentence, is_content

ASKING_WORDS = frozenset("what who whom whose when where which why how".split())
DROPPED_FRACTIONS = (0.0, 0.0, 0.2, 0.4)
"""Fractions of the question's words that are left out; one is drawn for each sentence. As 0.0 is
here twice, half of the sentences keep all words."""
REPLACE_PROBABILITY = 0.3
"""Probability that a statement replaces a word that is not frequent. A name is always replaced if
the sentence has a name."""
DRAWS = 10
"""Largest number of draws to find another question that has no answer in common."""


class MisleadingSentences:
    """Draws sentences for the questions of a `ReadingSplit`."""

    def __init__(self, split):
        self.split = split
        self.is_content = is_content(split.tokens.word_ids)
        self.asking_words = []
        """The first asking word of each question, a text; `None` for a question without one."""
        self.rows_by_asking_word = {}
        """`{asking word: rows of the questions with it}`"""
        for row in range(len(split)):
            words = self._lower_texts(split.question_tokens(row))
            asking_word = next((word for word in words if word in ASKING_WORDS), None)
            self.asking_words.append(asking_word)
            self.rows_by_asking_word.setdefault(asking_word, []).append(row)

    def draw(self, row, rng):
        """Draws a sentence that misleads question `row`.

        Returns its tokens, an empty list if the second contexts have no sentence.
        """
        sentence = draw_sentence(self.split, row, rng)
        if not sentence:
            return []
        question = without_question_mark(self.split, row)
        *words, last_sign = sentence
        way = rng.choice(["end", "front", "inside", "statement"])
        if way == "statement":
            return [*self._statement(row, question, words, rng), last_sign]

        dropped = rng.choice(DROPPED_FRACTIONS)
        kept = [token for token in question if rng.random() >= dropped]
        if way == "end":
            return [*words, *kept, last_sign]
        if way == "front":
            return [*kept, *words, last_sign]
        # They replace the words from `start` to `end`.
        start, end = sorted(rng.integers(len(words) + 1, size=2).tolist())
        return [*words[:start], *kept, *words[end:], last_sign]

    def _statement(self, row, question, words, rng):
        """Makes a statement of a question: its asking word becomes the answer of another question,
        its names and some other words become those of `words`.
        """
        new_words = [token for token in words if self.is_content[token]]
        new_names = [token for token in new_words if self._is_name_or_number(token)]
        asking_word = self.asking_words[row]
        lower_texts = self._lower_texts(question)
        asking_place = lower_texts.index(asking_word) if asking_word else None

        statement = []
        has_changed = False
        for place, token in enumerate(question):
            if place == asking_place:
                statement += self._draw_other_answer(row, rng)
            elif self._is_name_or_number(token) and new_names:
                statement.append(new_names[rng.integers(len(new_names))])
                has_changed = True
            elif self.is_content[token] and new_words and rng.random() < REPLACE_PROBABILITY:
                statement.append(new_words[rng.integers(len(new_words))])
                has_changed = True
            else:
                statement.append(token)
        if not has_changed:
            # With only its asking word replaced, the statement might be true. The words of another
            # sentence behind it prevent this.
            return [*statement, *words]
        return statement

    def _draw_other_answer(self, row, rng):
        """Draws the answer of another question with the same asking word.

        Returns its tokens, an empty list if `DRAWS` draws find no such question.
        """
        rows = self.rows_by_asking_word[self.asking_words[row]]
        own_answers = {answer.lower() for answer in self.split.answers[row]}
        for _ in range(DRAWS):
            other = rows[rng.integers(len(rows))]
            answers = {answer.lower() for answer in self.split.answers[other]}
            if not answers & own_answers:
                first, last = self.split.spans[other][0]
                return self.split.context_tokens(other)[first : last + 1]
        return []

    def _lower_texts(self, tokens):
        return [self.split.tokens.texts[token].lower() for token in tokens]

    def _is_name_or_number(self, token):
        first_character = self.split.tokens.texts[token][0]
        is_marked = first_character.isupper() or first_character.isdigit()
        return is_marked and self.is_content[token]


def without_question_mark(split, row):
    """The tokens of question `row` without its question mark."""
    return [token for token in split.question_tokens(row) if split.tokens.texts[token] != "?"]

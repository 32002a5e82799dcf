"""Words and sentences of the users in the training dialogs: `users.json` of a run."""

import collections

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.json_files import read_json
from colloquy.data.prepared import checked

FILE = "users.json"
PHRASES = 12
"""Most sentences that a run keeps as examples."""


class Users(Config):
    """The contents of `users.json`, learnt from train."""

    words: list[str]
    """All words of users, sorted. A bot says which words of a sentence are none of these."""
    phrases: list[str] = []
    """The first sentence of each of the `PHRASES` most frequent templates of users, see
    `Domain.template`.
    """
    opening: str = ""
    """The bot's most common first response, if the user is silent first in every dialog of train;
    else empty.
    """


def learn_users(dataset):
    """Learns `Users` from the training dialogs of a `tasks.dialog.data.DialogDataset`."""
    train = dataset.splits["train"]
    words = set()
    texts_by_template = collections.defaultdict(list)
    greetings = collections.Counter()
    for dialog in train.dialogs:
        turns = dataset.conversation(train, dialog)
        for turn in turns:
            if turn.speaker == "user" and turn.text != SILENCE:
                words.update(turn.text.split())
                texts_by_template[dataset.domain.template(turn.text)].append(turn.text)
        if turns[0].text == SILENCE:
            first_answer = dialog["answers"][0]
            greetings[dataset.domain.candidates[first_answer]] += 1

    opening = ""
    if greetings.total() == len(train.dialogs):
        [(opening, _)] = greetings.most_common(1)
    by_frequency = sorted(texts_by_template.values(), key=len, reverse=True)
    return Users(
        words=sorted(words),
        phrases=[texts[0] for texts in by_frequency[:PHRASES]],
        opening=opening,
    )


def load_users(path, domain):
    """Loads the `Users` of a run; a file that does not fit the domain is a `UserError`."""
    file = path / FILE
    with checked(file, "the words and sentences of users that train.py writes"):
        users = Users.model_validate(read_json(file))
        if users.opening and users.opening not in domain.candidate_numbers:
            raise ValueError(f"opening must be a candidate. Received: {users.opening!r}")
    return users

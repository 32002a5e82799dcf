"""What the users of the training dialogs say: `users.json` of a run."""

import collections

from colloquy.base.config import Config
from colloquy.data.corpora.babi_dialog import SILENCE
from colloquy.data.json_files import read_json
from colloquy.data.prepared import checked

FILE = "users.json"
PHRASES = 12


class Users(Config):
    """The contents of `users.json`, learnt from train."""

    words: list[str]
    """All words of users, sorted."""
    phrases: list[str] = []
    """Their most frequent sentences, one for each template."""
    opening: str = ""
    """The bot's greeting, if every dialog of train begins with the user's silence. Empty: users
    begin.
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
        greeting = dataset.domain.candidates[dialog["answers"][0]]
        greetings[greeting if turns[0].text == SILENCE else ""] += 1

    by_frequency = sorted(texts_by_template.values(), key=len, reverse=True)
    [(greeting, _)] = greetings.most_common(1)
    return Users(
        words=sorted(words),
        phrases=[texts[0] for texts in by_frequency[:PHRASES]],
        opening="" if "" in greetings else greeting,
    )


def load_users(path, domain):
    """Loads the `Users` of a run; a file that does not fit the domain is a `UserError`."""
    file = path / FILE
    with checked(file, "what users of the training dialogs say"):
        users = Users.model_validate(read_json(file))
        if users.opening and users.opening not in domain.candidate_numbers:
            raise ValueError(f"opening must be a candidate. Received: {users.opening!r}")
    return users

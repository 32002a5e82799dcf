"""DailyDialog (Li et al. 2017), and its translations in XDailyDialog (Liu et al. 2023).

    UTTERANCE __eou__ UTTERANCE __eou__ ... __eou__

One conversation per line. XDailyDialog leaves out the last `__eou__`, or puts labels after a tab, which are not read;
it is prepared with the tokenizer of its language, `mixed` for Chinese.
"""

import re

from data.text_files import bad_line, existing_directory, find_files, read_lines

TOKENIZER = "words"
END = "__eou__"
NAMES = {
    "train": ("train/dialogues_train.txt", "dialogues_train.txt", "*_train_human.txt", "dialogues_text_*.txt"),
    "dev": ("validation/dialogues_validation.txt", "dialogues_validation.txt", "*_dev_human.txt"),
}
APOSTROPHE = "['\u2018\u2019\u2032]"
CLITIC = re.compile(rf"([a-z]) ?{APOSTROPHE} ?(s|t|m|d|ll|re|ve)\b", re.IGNORECASE)
OTHER = re.compile(rf"\b(o|ma) ?{APOSTROPHE} ?(clock|am)\b", re.IGNORECASE)


def find_splits(directory):
    """Finds the files of a directory.

    Returns:
        `{"train": [files], "dev": [files]}`: those of the first name in `NAMES` that is there.

    Raises:
        UserError: where the directory or all files of a split are missing.
    """
    directory = existing_directory(directory)
    return {split: find_files(directory, names)[:1] for split, names in NAMES.items()}


def read(paths, split):
    """Reads conversations.

    The corpus separates apostrophes from their words, and writes `I \u2019 Ve`: they are joined here and not for all
    texts, as no one who talks to a model types so, and an apostrophe between spaces may elsewhere be a quotation mark.

    Args:
        paths: Files, UTF-8.
        split: Not used: each split has its files.

    Returns:
        List of conversations, each a list of utterances, two or more.

    Raises:
        UserError: where a file is missing or damaged, a line has no `__eou__` between utterances, or an utterance is
            empty; the corpus has no such lines.
    """
    found = []
    for path in paths:
        for number, line in read_lines(path, "conversations"):
            turns = line.partition("\t")[0].split(END)
            if not turns[-1].strip():
                turns.pop()
            if len(turns) < 2:
                raise bad_line(path, number, f"utterances separated by {END}", line)
            if not all(turn.strip() for turn in turns):
                raise bad_line(path, number, "no empty utterance", line)
            found.append([join_apostrophes(turn.strip()) for turn in turns])
    return found


def join_apostrophes(text):
    """Joins `s`, `t`, `m`, `d`, `ll`, `re`, `ve`, `o'clock` and `ma'am` with their apostrophes.

    >>> join_apostrophes("I \u2019 Ve said , don ' t say \u2018 Tom' s at six o \u2019 clock \u2019 .")
    "I've said , don't say \u2018 Tom's at six o'clock \u2019 ."
    """
    text = CLITIC.sub(lambda match: f"{match[1]}'{match[2].lower()}", text)
    return OTHER.sub(r"\1'\2", text)

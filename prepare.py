"""Makes a prepared dataset of a corpus's raw files.

python prepare.py --corpus=smn --source=../shared/data/ubuntu-irc --out=build/ubuntu-irc
python prepare.py --corpus=babi-dialog --source=../shared/data/babi-dialog --out=build/babi
python prepare.py --corpus=squad --source=../shared/data/squad --out=build/squad
python prepare.py --corpus=dailydialog --source=../shared/data/dailydialog --out=build/dailydialog
"""

import importlib

from absl import flags

from base import cli
from data.corpora import CORPORA
from data.tokenizers import TOKENIZERS, WHITESPACE

FLAGS = flags.FLAGS
flags.DEFINE_enum("corpus", None, list(CORPORA), "Format of the files in --source.")
flags.DEFINE_string("source", None, "Directory of the corpus: train, dev and test files.")
flags.DEFINE_string("out", None, "Directory to make; must not exist, or be empty.")
flags.DEFINE_string(
    "name", None, "Name of the corpus in tables; default: that of the source directory, for dialogs babi."
)
flags.DEFINE_integer("min_count", 2, "Rarer words are `_UNK_`.", lower_bound=1)
flags.DEFINE_integer(
    "hashed_words",
    0,
    "Selection: ids for the words that are `_UNK_`, by their hash, for models with lexical match; 0: none.",
    lower_bound=0,
    upper_bound=2**24,
)
flags.DEFINE_integer("dimension", 200, "Dimension of the word vectors.", lower_bound=1)
flags.DEFINE_enum(
    "word2vec_text",
    "utterances",
    ["utterances", "conversations"],
    "Word2vec: what a window stays within; conversations bring words of questions and answers together.",
)
flags.DEFINE_integer("window", 10, "Word2vec: context words to each side.", lower_bound=1)
flags.DEFINE_integer("negative", 25, "Word2vec: negative samples per word.", lower_bound=1)
flags.DEFINE_float("sample", 1e-4, "Word2vec: subsamples words above this frequency.", lower_bound=0.0)
flags.DEFINE_integer(
    "word2vec_epochs",
    None,
    "Word2vec: passes over the text; default: 20, of more than 2.5 million words fewer, at least one.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "word2vec_workers",
    None,
    "Word2vec: threads; with one, vectors repeat exactly. Default: one, for more than 10 million words one per core.",
    lower_bound=1,
)
flags.DEFINE_string("vectors", None, "File of word2vec or GloVe vectors to take; reading comprehension: also .npz.")
flags.DEFINE_string(
    "general_vectors",
    None,
    "Selection: file of word2vec or GloVe vectors, also .npz, that each word has beside its own of the corpus.",
)
flags.DEFINE_integer("seed", 1, "Seed for every random number generator.", lower_bound=0, upper_bound=2**32 - 1)
flags.DEFINE_integer(
    "candidates",
    10,
    "Selection: candidates expected per context of dev and test, else a warning; 0: any number.",
    lower_bound=0,
)
flags.DEFINE_enum(
    "storage",
    "auto",
    ["auto", "pickle", "arrays", "both"],
    "Selection: examples as data.pkl in the form of DAM's release, as flat arrays, which training reads "
    "from disk as it needs them, or both; auto: data.pkl of up to 500,000 lines, else arrays.",
)
flags.DEFINE_enum(
    "words_of",
    "all",
    ["all", "train"],
    "Dialog, reading comprehension: whose words make the vocabulary, those of all files or of train.",
)
flags.DEFINE_enum(
    "tokenizer",
    None,
    [WHITESPACE, *TOKENIZERS],
    "How texts are split into words, also those that a user writes later. Selection and generation; default: the one "
    "that suits the corpus. For files of words that are separated by spaces already `whitespace`; `terms` splits the "
    "same where they are cut as the logs of #ubuntu, and takes `Hello there!` as people write it.",
)
flags.DEFINE_bool("lower", True, "Makes texts lower case. Selection, unless split at white space alone; generation.")
flags.DEFINE_integer("turns", 1, "Generation: utterances that make a source, the last ones.", lower_bound=1)
flags.DEFINE_integer("max_words", 0, "Generation: pairs with a longer turn are left out; 0: none.", lower_bound=0)
flags.DEFINE_integer("vocabulary_size", 10000, "Generation: words that are known at most; 0: all.", lower_bound=0)
flags.DEFINE_integer(
    "trained_words",
    0,
    "Reading comprehension: words of train without a vector that occur so often get one that --set train_unknown=true "
    "trains; 0: none.",
    lower_bound=0,
)
flags.DEFINE_bool("drop_unknown", False, "Generation: leaves pairs out that hold a word that is not known.")
flags.DEFINE_string(
    "vocabulary_of",
    None,
    "A run, as pretrained/NAME, or a prepared dataset: what is prepared has the words of the one, and so a model of it "
    "can score it, or be trained on it.",
)
flags.DEFINE_bool(
    "ray",
    False,
    "Selection: all machines of a Ray cluster read the files; of RAY_ADDRESS, or one that this starts; docs/data.md.",
)
flags.mark_flags_as_required(["corpus", "source", "out"])

OF_TASK = {
    "selection": (
        *("min_count", "dimension", "window", "negative", "sample", "word2vec_epochs", "vectors", "general_vectors"),
        *("word2vec_text", "word2vec_workers", "seed", "candidates", "storage", "tokenizer", "lower", "hashed_words"),
    ),
    "dialog": ("words_of",),
    "reading_comprehension": ("vectors", "words_of", "min_count", "trained_words", "seed"),
    "generation": (
        *("tokenizer", "lower", "turns", "max_words", "min_count", "vocabulary_size", "drop_unknown"),
        *("vectors", "seed"),
    ),
}
"""Flags of each task, the fields of its `Settings`; all take --corpus, --source, --out, --name, --vocabulary_of."""
OF_WORDS = (
    *("min_count", "dimension", "window", "negative", "sample", "word2vec_epochs", "vectors", "hashed_words"),
    *("general_vectors", "word2vec_text", "words_of", "tokenizer", "lower", "turns", "vocabulary_size"),
    "trained_words",
)
"""Flags that --vocabulary_of answers."""


def main():
    task = CORPORA[FLAGS.corpus].task
    if FLAGS.vocabulary_of:
        cli.refuse_flags(OF_WORDS, "--vocabulary_of, which takes those of the run or dataset")
    others = {name for names in OF_TASK.values() for name in names} - set(OF_TASK[task])
    others |= set() if task == "selection" else {"ray"}
    cli.refuse_flags(sorted(others), f"--corpus={FLAGS.corpus}, whose flags are --{', --'.join(OF_TASK[task])}")
    module = importlib.import_module(f"tasks.{task}.prepare")  # only now: a wrong flag need not wait for it
    settings = module.Settings(**{name: FLAGS[name].value for name in ("name", "vocabulary_of", *OF_TASK[task])})
    module.prepare(FLAGS.corpus, FLAGS.source, FLAGS.out, settings, **({"ray": True} if FLAGS.ray else {}))


if __name__ == "__main__":
    cli.run(main)

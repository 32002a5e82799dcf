"""Recipes of seq2seq, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe

THREE_TURNS = "dailydialog, prepared with --turns=3"
NINE_WORDS = "cornell, prepared with --max_words=9 --min_count=3 --vocabulary_size=0 --drop_unknown"
OTHER_WORDS = "cornell, prepared with --vocabulary_of of dailydialog, three turns"
XDAILYDIALOG = "xdailydialog, prepared with --vocabulary_of of a run of the one above"
CHAT = {"attention": "luong_dot", "tied_output": True, "dropout": 0.3}
"""A GRU chatbot; the rows for the article differ in attention and output alone."""
LARGE = {**CHAT, "hidden": 512}
LARGER = {**LARGE, "dropout": 0.4}
SMALL = {"embedding_dim": 128, "hidden": 128}
TUTORIAL = {
    "attention": "luong_dot",
    "dropout": 0.1,
    "layers": 2,
    "merge": "sum",
    "embedding_start": "normal",
}
TUTORIAL |= {"embedding_dim": 500, "hidden": 500}

TRAINING = {"epochs": 8.0, "batch_size": 64, "learning_rate": 1e-3, "precision": "float32"}
TWO_EPOCHS = {**TRAINING, "epochs": 2.0, "validations_per_epoch": 2}
SAMPLE = {**TRAINING, "epochs": 6.0, "learning_rate": 3e-3}
LARGE_TRAINING = {**TRAINING, "precision": "bfloat16", "decay": 0.05}
FIRST = {**LARGE_TRAINING, "epochs": 1.5, "decay": 0.5, "validations_per_epoch": 0.666}
CHINESE = {**LARGE_TRAINING, "epochs": 5.0, "precision": "float32"}
SHORT = {**TRAINING, "epochs": 1.0, "precision": "bfloat16"}
"""One epoch of DailyDialog: compares attentions, and the additions of `chat-dailydialog`, at a
small equal budget.
"""
SUBTITLES = {**SHORT, "validations_per_epoch": 2}  # one epoch of subtitles: compares tokenizers
TUTORIAL_TRAINING = {
    **TRAINING,
    "epochs": 6.61,
    "validations_per_epoch": 6.05,
    "learning_rate": 1e-4,
}
TUTORIAL_TRAINING |= {"decoder_rate": 5.0, "decay": 1.0, "gradient_clip": 50.0}


def _chat(title, corpus="dailydialog", training=TRAINING, config=CHAT, **changes):
    return Recipe(f"Seq2seq, {title}", "seq2seq", corpus, {**config, **changes}, training)


def _dot(title, *settings, **changes):
    return _chat(f"Luong's dot attention{title}", *settings, **changes)


def _short(title, corpus="dailydialog", **changes):
    return _chat(f"{title}, 1 epoch", corpus, SHORT, **changes)


RECIPES = {
    "chat-additive": _chat("additive attention", attention="additive"),
    "chat-dot": _dot(""),  # the article's own is `chat-short-dot`
    # Larger, three turns of context, starts from the next; ours.
    "chat-dailydialog": _dot(
        ", 512 units, pre-trained, 3 turns", "dailydialog", LARGE_TRAINING, LARGER
    ),
    # Pre-trains the one above.
    "chat-cornell-first": _dot(
        ", 512 units, 3 turns, Cornell", OTHER_WORDS, FIRST, LARGE, dropout=0.2
    ),
    "chat-none": _chat("no attention", attention="none"),
    "chat-short": _short("Luong's dot attention"),
    "chat-short-dot": _short("dot attention", attention="dot"),  # the article's own
    "chat-short-dot-all": _short("dot attention, output from all", attention="dot", output="all"),
    # for `--reverse_run`
    "chat-short-reverse": _short("Luong's dot attention, reverse", reverse=True),
    "chat-short-turns": _short("Luong's dot attention, 3 turns", THREE_TURNS),
    "chat-short-units": _short(
        "Luong's dot attention, 512 units, 3 turns", THREE_TURNS, config=LARGER
    ),
    # Starts from `chat-cornell-first`.
    "chat-short-pretrained": _short(
        "Luong's dot attention, 512 units, pre-trained, 3 turns", THREE_TURNS, config=LARGER
    ),
    # the PyTorch tutorial's, 4,000 steps
    "chat-cornell": _dot(", 500 units", NINE_WORDS, TUTORIAL_TRAINING, TUTORIAL),
    "chat-subtitles": _dot(", subtitles", "subtitles", TWO_EPOCHS, dropout=0.2),
    # Larger, three turns of context, more epochs; ours.
    "chat-subtitles-long": _dot(
        ", 512 units, 3 turns",
        "subtitles, prepared with --turns=3",
        {**LARGE_TRAINING, "epochs": 3.0},
        LARGE,
    ),
    "chat-subtitles-characters": _dot(", characters", "subtitles", SUBTITLES, dropout=0.2),
    "chat-subtitles-words": _dot(
        ", words", "subtitles, prepared with --tokenizer=jieba", SUBTITLES, dropout=0.2
    ),
    # Everyday talk in Chinese; starts from `chat-subtitles-long`.
    "chat-xdailydialog": _dot(
        ", 512 units, pre-trained, 3 turns, Chinese", XDAILYDIALOG, CHINESE, LARGER
    ),
    "seq2seq-sample": _chat("additive attention, 128 units", "the embedded sample", SAMPLE, SMALL),
}

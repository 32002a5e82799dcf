"""Recipes of seq2seq, by name"""

from engine.recipe import Recipe

THREE_TURNS = "dailydialog, prepared with --turns=3"


def _chat(
    attention, *, corpus="dailydialog", epochs=8.0, precision="float32", results="", score=Recipe.score, **settings
):
    """A GRU chatbot; the rows for the article differ in attention and output alone."""
    return Recipe(
        model="seq2seq",
        corpus=corpus,
        flags={"epochs": epochs, "batch_size": 64, "learning_rate": 1e-3, "precision": precision},
        settings={"attention": attention, "tied_output": True, "dropout": 0.3, **settings},
        results=results,
        score=score,
    )


def _chat_short(attention, **settings):
    """One epoch of DailyDialog: compares attentions, and what `chat-dailydialog` adds, at a small equal budget."""
    return _chat(attention, epochs=1.0, precision="bfloat16", **settings)


RECIPES = {
    "chat-additive": _chat(
        "additive",
        results="chat/chat-additive-dailydialog-?-dev.json",
        score="dev perplexity 34.97; seed 1, 119 minutes, 2 cores, AMD EPYC",
    ),
    "chat-dot": _chat(  # Luong's; the article's own is `chat-short-dot`
        "luong_dot",
        results="chat/chat-dot-dailydialog-?-dev.json",
        score="dev perplexity 34.28; seed 1, 77 minutes, 2 cores, AMD EPYC",
    ),
    "chat-dailydialog": _chat(  # larger, three turns of context, starts from the next; ours
        "luong_dot",
        **{"precision": "bfloat16", "hidden": 512, "dropout": 0.4, "decay": 0.05},
        results="chat/chat-dailydialog-dailydialog-?-dev.json",
        score="dev perplexity 28.45; seed 1, 146 minutes, 2 cores, Intel(R) Xeon(R) Processor",
    ),
    "chat-cornell-first": _chat(  # what the one above starts from
        "luong_dot",
        corpus="cornell, prepared with --vocabulary_of of dailydialog, three turns",
        **{
            "precision": "bfloat16",
            "hidden": 512,
            "dropout": 0.2,
            "epochs": 1.5,
            "decay": 0.5,
            "validations_per_epoch": 0.666,
        },
    ),
    "chat-none": _chat(
        "none",
        results="chat/chat-none-dailydialog-?-dev.json",
        score="dev perplexity 35.54; seed 1, 88 minutes, 2 cores, AMD EPYC",
    ),
    "chat-short": _chat_short(
        "luong_dot",
        results="chat/chat-short-dailydialog-?-dev.json",
        score="dev perplexity 73.89; seed 1, 13 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-short-dot": _chat_short(  # the article's own
        "dot",
        results="chat/chat-short-dot-dailydialog-?-dev.json",
        score="dev perplexity 75.41; seed 1, 10 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-short-dot-all": _chat_short(
        "dot",
        output="all",
        results="chat/chat-short-dot-all-dailydialog-?-dev.json",
        score="dev perplexity 71.85; seed 1, 16 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-short-reverse": _chat_short(  # for `--reverse_run`
        "luong_dot",
        reverse=True,
        results="chat/chat-short-reverse-dailydialog-?-dev.json",
        score="dev perplexity 72.29; seed 1, 9 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-short-turns": _chat_short(
        "luong_dot",
        corpus=THREE_TURNS,
        results="chat/chat-short-turns-dailydialog-3-?-dev.json",
        score="dev perplexity 74.21; seed 1, 18 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-short-units": _chat_short(
        "luong_dot",
        corpus=THREE_TURNS,
        hidden=512,
        dropout=0.4,
        results="chat/chat-short-units-dailydialog-3-?-dev.json",
        score="dev perplexity 67.50; seed 1, 14 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-short-pretrained": _chat_short(  # starts from `chat-cornell-first`
        "luong_dot",
        corpus=THREE_TURNS,
        hidden=512,
        dropout=0.4,
        results="chat/chat-short-pretrained-dailydialog-3-?-dev.json",
        score="dev perplexity 42.19; seed 1, 51 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-cornell": Recipe(  # the PyTorch chatbot tutorial's, 4,000 steps
        model="seq2seq",
        corpus="cornell, prepared with --max_words=9 --min_count=3 --vocabulary_size=0 --drop_unknown",
        flags={"epochs": 6.61, "batch_size": 64, "learning_rate": 1e-4, "precision": "float32"},
        settings={
            "embedding_dim": 500,
            "embedding_start": "normal",
            "hidden": 500,
            "layers": 2,
            "merge": "sum",
            "attention": "luong_dot",
            "dropout": 0.1,
            "decoder_rate": 5.0,
            "decay": 1.0,
            "gradient_clip": 50.0,
            "validations_per_epoch": 6.05,
        },
        results="chat/chat-cornell-cornell-?-dev.json",
        score="dev perplexity 30.55; seed 1, 52 minutes, 2 cores, AMD EPYC",
    ),
    "chat-subtitles": Recipe(
        model="seq2seq",
        corpus="subtitles",
        flags={"epochs": 2.0, "batch_size": 64, "learning_rate": 1e-3, "precision": "float32"},
        settings={"attention": "luong_dot", "tied_output": True, "dropout": 0.2, "validations_per_epoch": 2},
        results="chat/chat-subtitles-subtitles-?-dev.json",
        score="dev perplexity 52.08; seed 1, 34 minutes, 2 cores, AMD EPYC",
    ),
    "chat-subtitles-long": _chat(  # larger, three turns of context, twice the epochs; ours
        "luong_dot",
        corpus="subtitles, prepared with --turns=3",
        **{"precision": "bfloat16", "hidden": 512, "epochs": 4.0, "decay": 0.05},
        results="chat/chat-subtitles-long-subtitles-?-dev.json",
        score="dev perplexity 43.39 after 3 of 4 epochs; seed 1, 104 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "chat-xdailydialog": _chat(  # everyday talk in Chinese; starts from the one above
        "luong_dot",
        corpus="xdailydialog, prepared with --vocabulary_of of a run of the one above",
        **{"precision": "bfloat16", "hidden": 512, "dropout": 0.4, "epochs": 5.0, "decay": 0.05},
        results="chat/chat-xdailydialog-xdailydialog-?-dev.json",
        score="dev perplexity 31.53; seed 1, 111 minutes, 1 core, Intel(R) Xeon(R) Processor",
    ),
    "seq2seq-sample": Recipe(
        model="seq2seq",
        corpus="the embedded sample",
        flags={"epochs": 6.0, "batch_size": 64, "learning_rate": 3e-3, "precision": "float32"},
        settings={"embedding_dim": 128, "hidden": 128},
        results="seq2seq-sample.json",
        score="dev perplexity 1.92; seed 1, 3 minutes, 2 cores, AMD EPYC",
    ),
}

"""Recipes of seq2seq, by name; see `engine.task.Recipe`."""

from colloquy.engine.task import Recipe
from colloquy.tasks.generation.training import Training

# Settings of `chat-dot`, a GRU. `chat-additive` differs in its attention alone.
CHAT = {"attention": "luong_dot", "tied_output": True, "dropout": 0.3}
LARGE = {**CHAT, "hidden": 512}
TRAINING = Training(epochs=8.0, batch_size=64, learning_rate=1e-3, precision="float32")
LARGE_TRAINING = TRAINING.replace(precision="bfloat16", decay=0.05)

RECIPES = {
    "chat-additive": Recipe(
        title="Seq2seq, additive attention",
        model="seq2seq",
        corpus="dailydialog",
        config={**CHAT, "attention": "additive"},
        training=TRAINING,
    ),
    # `luong_dot` attends after the decoder's step. The article that docs/articles.md lists attends
    # before it: `--set=attention=dot`.
    "chat-dot": Recipe(
        title="Seq2seq, Luong's dot attention",
        model="seq2seq",
        corpus="dailydialog",
        config=CHAT,
        training=TRAINING,
    ),
    # The published English chat, see docs/seq2seq.md: three turns of context, trained with
    # --init_from of a run of `chat-cornell-first`.
    "chat-dailydialog": Recipe(
        title="Seq2seq, Luong's dot attention, 512 units, pre-trained, 3 turns",
        model="seq2seq",
        corpus="dailydialog, prepared with --turns=3",
        config={**LARGE, "dropout": 0.4},
        training=LARGE_TRAINING,
    ),
    # The first stage of `chat-dailydialog`. It is validated once, at its end: a validation comes
    # after 1 / 0.666 epochs.
    "chat-cornell-first": Recipe(
        title="Seq2seq, Luong's dot attention, 512 units, 3 turns, Cornell",
        model="seq2seq",
        corpus="cornell, prepared with --vocabulary_of=DATASET, that of chat-dailydialog",
        config={**LARGE, "dropout": 0.2},
        training=TRAINING.replace(
            epochs=1.5, precision="bfloat16", decay=0.5, validations_per_epoch=0.666
        ),
    ),
    # The settings of PyTorch's chatbot tutorial, which trains for 4,000 steps. An epoch has 605
    # steps here, so these are 6.61 epochs. Validations are 100 steps apart.
    "chat-cornell": Recipe(
        title="Seq2seq, Luong's dot attention, 500 units",
        model="seq2seq",
        corpus="cornell, prepared with --max_words=9 --min_count=3 --vocabulary_size=0 "
        "--drop_unknown",
        config={
            "attention": "luong_dot",
            "dropout": 0.1,
            "layers": 2,
            "merge": "sum",
            "embedding_start": "normal",
            "embedding_dim": 500,
            "hidden": 500,
        },
        training=TRAINING.replace(
            epochs=6.61,
            learning_rate=1e-4,
            validations_per_epoch=6.05,
            decoder_rate=5.0,
            decay=1.0,
            gradient_clip=50.0,
        ),
    ),
    # The first stage of `chat-xdailydialog`: Chinese film subtitles, three turns of context.
    "chat-subtitles-long": Recipe(
        title="Seq2seq, Luong's dot attention, 512 units, 3 turns",
        model="seq2seq",
        corpus="subtitles, prepared with --turns=3",
        config=LARGE,
        training=LARGE_TRAINING.replace(epochs=3.0),
    ),
    # The published Chinese chat, trained with --init_from of a run of `chat-subtitles-long`.
    "chat-xdailydialog": Recipe(
        title="Seq2seq, Luong's dot attention, 512 units, pre-trained, 3 turns, Chinese",
        model="seq2seq",
        corpus="dailydialog, prepared with --name=xdailydialog and --vocabulary_of=RUN, a run of "
        "chat-subtitles-long",
        config={**LARGE, "dropout": 0.4},
        training=TRAINING.replace(epochs=5.0, decay=0.05),
    ),
    # Small and short. `train.py --model=seq2seq` without data finds it by its name, MODEL-chitchat.
    "seq2seq-chitchat": Recipe(
        title="Seq2seq, additive attention, 128 units",
        model="seq2seq",
        corpus="chitchat",
        config={"embedding_dim": 128, "hidden": 128},
        training=TRAINING.replace(epochs=0.5, learning_rate=3e-3, validations_per_epoch=4.0),
    ),
    # A chat for commercial use: chitchat, its only corpus, has the MIT licence.
    "seq2seq-chitchat-long": Recipe(
        title="Seq2seq, Luong's dot attention, 512 units, 3 turns, chitchat",
        model="seq2seq",
        corpus="chitchat, prepared with --task=generation --tokenizer=words --turns=3 "
        "--max_words=40",
        config=LARGE,
        training=LARGE_TRAINING.replace(epochs=3.0),
    ),
}

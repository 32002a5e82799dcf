"""Draws the diagrams under *The model* in docs/: a box for each layer, by its name in the code.

    python -m colloquy.tools.diagrams    # writes docs/images/MODEL.svg

A test checks that the models have layers of these names.
"""

from typing import NamedTuple

from matplotlib.figure import Figure

from colloquy.tools.images import save

COLUMN = 2.7
ROW = 1.1
"""Inches from a box to the next one: to the right, and down."""

LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1}


class Box(NamedTuple):
    """A layer, or an input or output of the network."""

    column: float
    row: float
    note: str = ""
    """A second line, below the name."""
    is_layer: bool = True


class Diagram(NamedTuple):
    """The layers of a model and what passes between them."""

    boxes: dict[str, Box]
    arrows: list[tuple[str, str, str]]
    """From a box to another one, and what passes."""


DIAGRAMS = {
    "dam": Diagram(
        {
            "turns": Box(0, 0, "words of each turn", is_layer=False),
            "responses": Box(0, 2, "words of each one", is_layer=False),
            "word_embedding": Box(1, 1),
            "self_attention": Box(2, 0, "L levels"),
            "cross_match": Box(2, 2, "levels 0 to L"),
            "aggregation": Box(3, 1, "3-D convolutions"),
            "logits": Box(4, 1, "one for each response", is_layer=False),
        },
        [
            ("turns", "word_embedding", ""),
            ("responses", "word_embedding", ""),
            ("word_embedding", "self_attention", "U0, R0"),
            ("word_embedding", "cross_match", "U0, R0"),
            ("self_attention", "cross_match", "U1 to UL, R1 to RL"),
            ("self_attention", "aggregation", "M_self = U R"),
            ("cross_match", "aggregation", "M_cross"),
            ("aggregation", "logits", ""),
        ],
    ),
    "bidaf": Diagram(
        {
            "words": Box(0, 0, "passage and question", is_layer=False),
            "characters": Box(0, 1, "of each word", is_layer=False),
            "word_embedding": Box(1, 0, "fixed GloVe vectors"),
            "character_cnn": Box(1, 1),
            "highway": Box(2, 0.5, "two layers"),
            "contextual": Box(3, 0.5, "BiLSTM"),
            "attention_flow": Box(3, 2, "C2Q and Q2C"),
            "modelling": Box(2, 2, "two BiLSTMs"),
            "end": Box(1, 2.5, "BiLSTM"),
            "start_logit": Box(0, 2, "of each word"),
            "end_logit": Box(0, 3, "of each word"),
        },
        [
            ("words", "word_embedding", ""),
            ("characters", "character_cnn", ""),
            ("word_embedding", "highway", ""),
            ("character_cnn", "highway", ""),
            ("highway", "contextual", "X, Q"),
            ("contextual", "attention_flow", "H, U"),
            ("attention_flow", "modelling", "G"),
            ("modelling", "start_logit", "G, M"),
            ("modelling", "end", "M"),
            ("end", "end_logit", "G, M2"),
        ],
    ),
    "memma": Diagram(
        {
            "sentences": Box(0, 0, "history and facts", is_layer=False),
            "utterance": Box(0, 1, "the user's last", is_layer=False),
            "candidates": Box(0, 2, "", is_layer=False),
            "bag_of_words": Box(1, 1, "a sum of word vectors"),
            "speaker": Box(2, 0, "and time"),
            "attention": Box(3, 0, "heads over the memory"),
            "shortcut": Box(3, 1, "identity or gate"),
            "logits": Box(3, 2, "of each candidate", is_layer=False),
        },
        [
            ("sentences", "bag_of_words", ""),
            ("utterance", "bag_of_words", ""),
            ("candidates", "bag_of_words", ""),
            ("bag_of_words", "speaker", "x"),
            ("speaker", "attention", "memory m"),
            ("attention", "shortcut", "o"),
            ("bag_of_words", "shortcut", "query u, in each hop"),
            ("shortcut", "logits", "U1 + US"),
            ("bag_of_words", "logits", "C"),
        ],
    ),
    "seq2seq": Diagram(
        {
            "source": Box(0, 0, "what was said", is_layer=False),
            "target_in": Box(0, 1, "the reply so far", is_layer=False),
            "word_embedding": Box(1, 0.5, "one table for both"),
            "encoder": Box(2, 0, "GRU or LSTM"),
            "decoder": Box(2, 1, "with attention"),
            "logits": Box(3, 1, "of the next word"),
        },
        [
            ("source", "word_embedding", ""),
            ("target_in", "word_embedding", ""),
            ("word_embedding", "encoder", ""),
            ("word_embedding", "decoder", ""),
            ("encoder", "decoder", "states h"),
            ("decoder", "logits", "s, c"),
        ],
    ),
}


def draw(diagram: Diagram) -> Figure:
    columns = max(box.column for box in diagram.boxes.values())
    rows = max(box.row for box in diagram.boxes.values())
    figure = Figure((COLUMN * (columns + 0.8), ROW * (rows + 0.8)))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-0.4, columns + 0.4), ylim=(rows + 0.4, -0.4))
    axes.set_axis_off()
    patches = {}
    for name, box in diagram.boxes.items():
        frame = {
            "boxstyle": "round,pad=0.6",
            "facecolor": "#ddf4ff" if box.is_layer else "#f6f8fa",
            "edgecolor": "#57606a",
        }
        text = axes.text(
            box.column,
            box.row,
            f"{name}\n{box.note}" if box.note else name,
            ha="center",
            va="center",
            bbox=frame,
        )
        patches[name] = text.get_bbox_patch()
    for source, target, label in diagram.arrows:
        first = diagram.boxes[source]
        last = diagram.boxes[target]
        # The arrow ends at the frames of its boxes.
        style = {"arrowstyle": "->", "patchA": patches[source], "patchB": patches[target]}
        axes.annotate("", (last.column, last.row), (first.column, first.row), arrowprops=style)
        middle = (first.column + last.column) / 2, (first.row + last.row) / 2
        axes.text(*middle, label, fontsize=8, ha="center", va="center", bbox=LABEL)
    return figure


def main():
    for name, diagram in DIAGRAMS.items():
        save(draw(diagram), name, diagram)


if __name__ == "__main__":
    main()

"""Draws the diagrams under *The model* in docs/: a box for each layer, by its name in the code.

    python -m colloquy.tools.diagrams    # writes docs/images/MODEL.svg

A test checks that the models have layers of these names.
"""

import html
from typing import NamedTuple

from colloquy.metrics.published import RESULTS

IMAGES = RESULTS.parent / "docs" / "images"

BOX = (150, 46)
"""Width and height of a box."""
PITCH = (232, 74)
"""Distance from a box to the next one, to the right and down."""
MARGIN = 12


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


def draw(diagram: Diagram) -> str:
    """Draws a diagram as SVG."""
    columns = max(box.column for box in diagram.boxes.values())
    rows = max(box.row for box in diagram.boxes.values())
    width = columns * PITCH[0] + BOX[0] + 2 * MARGIN
    height = rows * PITCH[1] + BOX[1] + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">',
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 Z" fill="#57606a"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for source, target, label in diagram.arrows:
        lines += _draw_arrow(diagram.boxes[source], diagram.boxes[target], label)
    for name, box in diagram.boxes.items():
        lines += _draw_box(name, box)
    return "\n".join([*lines, "</svg>\n"])


def _center(box):
    x = MARGIN + BOX[0] / 2 + box.column * PITCH[0]
    y = MARGIN + BOX[1] / 2 + box.row * PITCH[1]
    return x, y


def _draw_box(name, box):
    x, y = _center(box)
    fill = "#ddf4ff" if box.is_layer else "#f6f8fa"
    left = x - BOX[0] / 2
    top = y - BOX[1] / 2
    lines = [
        f'<rect x="{left:g}" y="{top:g}" width="{BOX[0]}" height="{BOX[1]}" rx="6" '
        f'fill="{fill}" stroke="#57606a"/>',
        f'<text x="{x:g}" y="{y - 3 if box.note else y + 4:g}" font-weight="bold">{name}</text>',
    ]
    if box.note:
        note = html.escape(box.note)
        lines.append(f'<text x="{x:g}" y="{y + 14:g}" font-size="11">{note}</text>')
    return lines


def _draw_arrow(source, target, label):
    x1, y1 = _center(source)
    x2, y2 = _center(target)
    if source.column == target.column:
        y1 += BOX[1] / 2
        y2 -= BOX[1] / 2
    else:
        step = BOX[0] / 2 if x1 < x2 else -BOX[0] / 2
        x1 += step
        x2 -= step
    lines = [
        f'<path d="M{x1:g},{y1:g} L{x2:g},{y2:g}" stroke="#57606a" marker-end="url(#head)"/>',
    ]
    if label:
        # Halfway along the arrow, on a white ground.
        x = (x1 + x2) / 2
        y = (y1 + y2) / 2
        lines.append(
            f'<text x="{x:g}" y="{y + 4:g}" font-size="11" stroke="#ffffff" stroke-width="4" '
            f'paint-order="stroke">{html.escape(label)}</text>'
        )
    return lines


def main():
    for name, diagram in DIAGRAMS.items():
        path = IMAGES / f"{name}.svg"
        path.write_text(draw(diagram), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()

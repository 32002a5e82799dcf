"""Pictures of docs/, as SVG."""

from matplotlib import rc_context

from colloquy.metrics.published import RESULTS

IMAGES = RESULTS.parent / "docs" / "images"
OPTIONS = {
    "svg.fonttype": "none",  # texts stay texts
    "svg.hashsalt": "colloquy",  # the same names of elements at each drawing
    "font.size": 9,
}


def save(figure, name, content):
    """Writes a figure of `matplotlib` into docs/images/NAME.svg.

    Its description is `describe(content)`, by which a test knows whether the picture is up to date,
    whatever the version of matplotlib draws.
    """
    path = IMAGES / f"{name}.svg"
    metadata = {"Date": None, "Creator": None, "Description": describe(content)}
    with rc_context(OPTIONS):
        figure.savefig(path, metadata=metadata)
    print(path)


def describe(content):
    """The content of a picture, without what XML would escape."""
    return repr(content).replace("'", "")

"""The embedded sample of a chat: simulated conversations, written as a user's own would be.

    python -m data.samples --task=generation --out=build/chat/raw --seed=1

writes `train.txt` and `dev.txt` in the format of `data.corpora.conversations`: a conversation per line, turns separated
by tabs.
"""

from data.samples.files import write_entries
from data.samples.talk import simulate


def write_conversations(directory, count=2500, seed=1, held_out=250):
    """Simulates conversations and writes both files, or nothing at all.

    Args:
        directory: Where; made if missing. Files of these names are replaced.
        count: How many to simulate for both splits together.
        seed: Integer; the same seed writes the same bytes.
        held_out: How many of them, the last ones, are dev.

    Returns:
        The number of conversations in each file, as `{"train.txt": 2250, "dev.txt": 250}`.

    Raises:
        ValueError: where no conversation is left for dev or for training.
        OSError: where the files cannot be written.
    """
    if not 1 <= held_out < count:
        raise ValueError(f"held_out must be in [1, count). Received: held_out={held_out}, count={count}")
    lines = ["\t".join(turn.text for turn in each.turns) + "\n" for each in simulate(count, seed)]
    return write_entries(directory, {"train.txt": lines[:-held_out], "dev.txt": lines[-held_out:]})

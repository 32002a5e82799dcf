"""The embedded sample of a chat: simulated conversations, written as a user's own would be.

    python -m data.samples.generation --out=build/chat/raw --seed=1

writes `train.txt` and `dev.txt` in the format of `data.corpora.conversations`: a conversation per line, turns separated
by tabs.
"""

from absl import flags

from base.cli import run
from base.files import UserError, atomic_files
from data.samples.talk import simulate

HELD_OUT_SHARE = 0.1


def write_conversations(directory, conversations=2500, seed=1):
    """Simulates conversations and writes both files, or nothing at all.

    Args:
        directory: Where; made if missing. Files of these names are replaced.
        conversations: How many to simulate for both splits together, at least 10; the last tenth is dev.
        seed: Integer; the same seed writes the same bytes.

    Returns:
        The number of conversations in each file, as `{"train.txt": 2250, "dev.txt": 250}`.

    Raises:
        ValueError: for fewer than 10 conversations.
        OSError: where the files cannot be written.
    """
    held_out = int(HELD_OUT_SHARE * conversations)
    if not held_out:
        raise ValueError(f"conversations must be at least 10. Received: conversations={conversations}")
    lines = ["\t".join(turn.text for turn in each.turns) for each in simulate(conversations, seed)]
    files = {"train.txt": lines[:-held_out], "dev.txt": lines[-held_out:]}
    with atomic_files(directory) as staging:
        for name, part in files.items():
            (staging / name).write_text("".join(f"{line}\n" for line in part), encoding="utf-8", newline="\n")
    return {name: len(part) for name, part in files.items()}


def main():
    out = flags.FLAGS.out
    try:
        written = write_conversations(out, flags.FLAGS.conversations, flags.FLAGS.seed)
    except (ValueError, OSError) as error:
        raise UserError(str(error)) from error
    print(f"Wrote {out}: " + ", ".join(f"{name} {count}" for name, count in written.items()))


if __name__ == "__main__":
    flags.DEFINE_string("out", None, "Directory to write the files to.", required=True)
    flags.DEFINE_integer("conversations", 2500, "How many to simulate.")
    flags.DEFINE_integer("seed", 1, "The same seed writes the same files.")
    run(main)

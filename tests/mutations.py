"""Faults that the tests must notice: each is put into a copy of the project, where the tests beside
it have to fail.

python -m tests.mutations        all of them, in about ten minutes
python -m tests.mutations dam    those whose file or text has the word
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARTICLE = "models_contract.py -k matches_its_article"
EQUATIONS = "layers_equations.py -k"
LEFT_OUT = shutil.ignore_patterns(
    ".*", "build", "runs", "results", "pretrained", "docs", "__pycache__"
)

MUTATIONS = [
    (
        "layers/masking.py",
        "(mask, x, ops.zeros((), dtype=x.dtype))",
        "(mask, x, x)",
        "layers_masking.py",
    ),
    ("layers/masking.py", "weights = zero_padding(weights, key_mask)", "pass", "layers_masking.py"),
    (
        "layers/attentive_module.py",
        "/ math.sqrt(query.shape[-1])",
        "/ query.shape[-1]",
        f"{EQUATIONS} AttentiveModule",
    ),
    (
        "layers/match_aggregation.py",
        "math.ceil(size / POOL) /",
        "size // POOL /",
        f"{EQUATIONS} pooled_size",
    ),
    (
        "layers/layer_norm.py",
        "- c_RD * along_h_R1",
        "+ c_RD * along_h_R1",
        "layers_optimizations.py -k layer_norm",
    ),
    (
        "layers/attention.py",
        "ops.concatenate([inputs, c]",
        "ops.concatenate([c, inputs]",
        f"{EQUATIONS} decoder",
    ),
    (
        "layers/attention_flow.py",
        "_max(S_BTJ, query_mask",
        "_max(S_BTJ, (query_mask | True)",
        f"{EQUATIONS} Flow",
    ),
    ("layers/attention_flow.py", "H_BTD * h_tilde_BD[", "H_BTD + h_tilde_BD[", f"{EQUATIONS} Flow"),
    (
        "layers/tensorflow_kernels.py",
        "y=i, dy=new)",
        "y=i, dy=i)",
        "layers_optimizations.py -k bilstm",
    ),
    (
        "layers/char_cnn.py",
        "[0, self.width - 1]",
        "[self.width - 1, 0]",
        f"{EQUATIONS} CharacterCNN",
    ),
    (
        "layers/recurrent.py",
        "[zero_padding(x, mask[..., None]), *last]",
        "[x, *last]",
        f"{EQUATIONS} RecurrentEncoder",
    ),
    (
        "layers/bag_of_words.py",
        "self.real_rows[0] = 0.0",
        "self.real_rows[0] = 1.0",
        f"{EQUATIONS} BagOfWords",
    ),
    ("layers/ordered_words.py", "1 - 2 * part_SW", "1 - part_SW", f"{EQUATIONS} OrderedWords"),
    (
        "layers/dialog_history.py",
        "else ops.less\n",
        "else ops.less_equal\n",
        f"{ARTICLE} and memn2n",
    ),
    ("layers/shortcut.py", "state * (1 - T)", "state * T", f"{EQUATIONS} Shortcut"),
    (
        "layers/entity_pointer.py",
        "[:, 1] + a_BNTM[:, 2]",
        "[:, 1] - a_BNTM[:, 2]",
        f"{EQUATIONS} EntityPointer",
    ),
    # The first three of BiDAF passed all tests before whole models were compared with their
    # articles.
    (
        "models/bidaf.py",
        "flow(H, U, t_mask, j_mask)",
        "flow(H, 2 * U, t_mask, j_mask)",
        f"{ARTICLE} and bidaf",
    ),
    (
        "models/bidaf.py",
        "ops.concatenate([G, M2]",
        "ops.concatenate([M2, G]",
        f"{ARTICLE} and bidaf",
    ),
    ("models/bidaf.py", "M * a], axis=-1)", "M * M], axis=-1)", f"{ARTICLE} and bidaf"),
    (
        "models/bidaf.py",
        "None] + ends_BTL",
        "None] - ends_BTL",
        "tasks_reading_comprehension_scoring.py",
    ),
    ("models/dam.py", '"last": [c.levels]', '"last": [c.levels - 1]', f"{ARTICLE} and dam"),
    ("models/dam.py", "math.sqrt(c.embedding_dim)", "c.embedding_dim", f"{ARTICLE} and dam"),
    ("models/memma.py", "U_1_BTD + u_BTD if", "u_BTD if", f"{ARTICLE} and memma"),
    (
        "models/memn2n.py",
        "(R(read_BTD), q_BTD)",
        "(R(read_BTD), read_BTD)",
        f"{ARTICLE} and memn2n",
    ),
    (
        "models/seq2seq.py",
        "scored=c.vocabulary_size + 1",
        "scored=c.vocabulary_size",
        f"{ARTICLE} and seq2seq",
    ),
    ("models/decoding.py", "t >= d.min_length", "t > d.min_length", "models_decoding.py"),
    ("metrics/ranking.py", "positive * (rank <= k)", "positive * (rank < k)", "metrics_ranking.py"),
    (
        "metrics/reading_comprehension.py",
        "/ len(predicted)",
        "/ len(right)",
        "metrics_reading_comprehension.py",
    ),
    ("metrics/generation.py", "len(words) - n + 1", "len(words) - n", "metrics_generation.py"),
    (
        "data/batching.py",
        "default_rng((seed, epoch))",
        "default_rng((epoch, seed))",
        "data_batching.py",
    ),
    (
        "engine/train.py",
        "> self.state.best_score",
        "< self.state.best_score",
        "engine_train.py -k the_best_weights and dialog",
    ),
    (
        "engine/records.py",
        "interval + 1) *",
        "interval + 2) *",
        "engine_train.py -k extended_run_keeps",
    ),
    ("engine/optimizers.py", "(g_UD - m) * (1", "(g_UD + m) * (1", "engine_optimizers.py"),
]


def main(words):
    chosen = [mutation for mutation in MUTATIONS if all(word in str(mutation) for word in words)]
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "copy"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        survived = [mutation for mutation in chosen if not caught(copy, *mutation)]
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutations caught")
    return bool(survived)


def caught(copy, file, old, new, tests):
    """Whether the tests fail once `old` is `new`."""
    path, begin = copy / file, time.monotonic()
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise ValueError(f"{file}: expected {old!r} once. Received: {text.count(old)} times")
    path.write_text(text.replace(old, new), encoding="utf-8")
    name, *options = f"tests/test_{tests}".split(" ", 2)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        name,
        *options,
    ]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    path.write_text(text, encoding="utf-8")
    outcome = {0: "SURVIVED", 1: "caught"}.get(
        done.returncode, f"pytest failed: {done.stdout[-2000:]}"
    )
    print(
        f"{outcome:8}  {time.monotonic() - begin:3.0f} s  {file}: {old.strip()} -> {new.strip()}",
        flush=True,
    )
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

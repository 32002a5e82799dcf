"""What tables call a model: its name, and where its settings differ from the paper's."""


def model_name(model, settings, training):
    """The name of a trained model for a table's row.

    Args:
        model: Key of `models.MODELS`.
        settings: Its config, `{field: value}`; fields that older records lack count as the paper's.
        training: The task's `Training`, `{field: value}`.

    >>> model_name("memn2n", {"gated": True, "speaker": True, "time": True}, {})
    'Gated MemN2N'
    >>> model_name("my-model", {}, {})
    'My model'
    """
    notes = _NOTES.get(model, lambda settings, training: [])(settings, training)
    return ", ".join([_title(model, settings), *notes])


def of_today(model, settings):
    """The settings of a model as today's code names them, out of a run or a record that earlier code wrote.

    Until the decoder of seq2seq models had an `output`, `attention=dot` was what is `luong_dot` now.

    >>> of_today("seq2seq", {"attention": "dot"})
    {'attention': 'luong_dot', 'output': 'state'}
    >>> of_today("seq2seq", {"attention": "dot", "output": "state"})
    {'attention': 'dot', 'output': 'state'}
    """
    if model != "seq2seq" or "output" in settings:
        return settings
    attention = settings.get("attention", "additive")
    return {**settings, "attention": "luong_dot" if attention == "dot" else attention, "output": "state"}


def record_name(record):
    """The name of a record of results/measured: of how many models it is if of several, the model's name, whether it
    was trained on other data before, of how many turns its sources are if not of one and, unless it was greedy, how
    replies were searched for.

    A record without settings, as of published rows, keeps the name it has.
    """
    settings = record.get("settings")
    name = record["name"]
    if settings and "model" in record:
        present = of_today(record["model"], settings["model"])
        name = model_name(record["model"], present, settings.get("training", {}))
    turns, search = record.get("text", {}).get("turns", 1), record.get("search", "greedy")
    notes = ["pre-trained"] * bool(record.get("before")) + [f"{turns} turns"] * (turns != 1)
    several = f"Ensemble of {len(record['seeds'])}: " if settings and "seeds" in record else ""
    return several + ", ".join([name, *notes, *([] if search == "greedy" else [search])])


TITLES = {
    "bidaf": "BiDAF",
    "entity-memma": "Entity MEMMA",
    "memma": "MEMMA",
    "memn2n": "MemN2N",
    "memr": "MEMR",
    "seq2seq": "Seq2seq",
}


def _title(model, settings):
    if model == "dam":
        variant = settings.get("variant", "full")
        return "DAM" if variant == "full" else f"DAM_{variant}"
    title = TITLES.get(model, model.replace("-", " ").capitalize())
    return f"Gated {title}" if settings.get("gated") else title


def _dam(settings, training):
    """The articles' network has 5 levels and reads 9 x 50 words; it learns from the file's pairs, one by one."""
    turns, words = settings.get("max_turns", 9), settings.get("max_words", 50)
    notes = []
    if settings.get("levels", 5) != 5:
        notes.append(f"{settings['levels']} level{'s' * (settings['levels'] != 1)}")
    if (turns, words) != (9, 50):
        notes.append(f"{turns} x {words} words")
    if settings.get("embedding_dim", 200) != 200:
        notes.append(f"{settings['embedding_dim']}-d vectors")
    if training.get("negatives", "file") == "fresh":
        count = training.get("negatives_per_positive", 1)
        notes.append("fresh negatives" if count == 1 else f"{count} fresh negatives")
    if training.get("loss", "pointwise") != "pointwise":
        notes.append(training["loss"])
    if settings.get("masking") == "release":
        notes.append("release mode")
    lexical = settings.get("lexical") or {}
    if gain := lexical.get("gain", settings.get("lexical_gain")):  # flat in older records
        power = lexical.get("power", settings.get("lexical_power", 1.0))
        words = " of stems" if lexical.get("stems", settings.get("lexical_stems")) else ""
        notes.append(f"{gain:g} x TF-IDF" + (f"^{power:g}" if power != 1 else "") + words)
    if training.get("ema"):
        notes.append("averaged weights")
    return notes


def _bidaf(settings, training):
    notes = []
    if settings.get("hidden", 100) != 100:
        notes.append(f"{settings['hidden']} units")
    if settings.get("embedding_dim", 100) != 100:
        notes.append(f"{settings['embedding_dim']}-d vectors")
    notes += [f"no {name}" for name in ("characters", "words") if not settings.get(f"use_{name}", True)]
    notes += [f"no {name.upper()}" for name in ("c2q", "q2c") if not settings.get(name, True)]
    if settings.get("end_pointer", "paper") != "paper":
        notes.append(f"{settings['end_pointer']} end pointer")
    if settings.get("similarity_start") == "dot":
        notes.append("similarity starts as a dot product")
    notes += [f"{name} by MLP" for name in ("similarity", "fusion") if settings.get(name) == "mlp"]
    notes += ["dynamic attention"] * (settings.get("attention", "flow") == "dynamic")
    notes += ["self-attention"] * settings.get("self_attention", False)
    notes += ["exact match"] * settings.get("exact_match", False)
    notes += ["trained unknown words"] * settings.get("train_unknown", False)
    if settings.get("tuned_words"):
        notes.append(f"{settings['tuned_words']:,} words tuned")
    notes += ["AdaDelta"] * (training.get("optimizer") == "adadelta")
    notes += ["linear decay"] * (training.get("decay", 1) != 1)
    if settings.get("length_penalty"):
        notes.append(f"length penalty {settings['length_penalty']:g}")
    return notes


def _seq2seq(settings, training):
    attention = settings["attention"].replace("luong", "Luong's").replace("_", " ").replace("none", "no")
    output = ["output from all"] * (settings.get("output", "state") == "all")
    hidden = settings.get("hidden", 256)
    size = [f"{hidden} units"] * (hidden != 256)
    return [f"{attention} attention", *size, *output, *(["reverse"] * settings.get("reverse", False))]


def _memory(settings, training):
    """Speaker and time are on unless said otherwise, in the models that remember a history."""
    features = [name.replace("_", " ") for name in ("speaker", "time", "match_types") if settings.get(name)]
    notes = []
    if features != ["speaker", "time"]:
        notes.append(" + ".join(features) or "no features")
    return notes + _shared_memory(settings, training)


def _typed(settings, training):
    """The models without a speaker and a time to switch."""
    return ["match types"] * bool(settings.get("match_types")) + _shared_memory(settings, training)


def _shared_memory(settings, training):
    notes = ["fixed word vectors"] * (not settings.get("train_embedding", True))
    if settings.get("shortcut", "gated") != "gated":
        notes.append(f"{settings['shortcut']} shortcut".replace("none", "no"))
    if settings.get("gate", "tanh") != "tanh":
        notes.append(f"{settings['gate']} gate")
    if settings.get("memory", "sentences") == "latest":
        notes.append("latest memory")
    if settings.get("divisor", "dimension") != "dimension":
        notes.append(f"divisor {settings['divisor']}")
    for field, usual in (("heads", 4), ("hops", 3)):
        count = settings.get(field, usual)
        notes += [f"{count} {field}".removesuffix("s" if count == 1 else "")] * (count != usual)
    if settings.get("encoding", "sum") != "sum":
        notes.append({"position": "weighted by position", "attention": "attention between words"}[settings["encoding"]])
    if settings.get("dropout"):
        notes.append(f"dropout {settings['dropout']:g}")
    return notes + ["averaged weights"] * bool(training.get("ema"))


_NOTES = {
    "bidaf": _bidaf,
    "dam": _dam,
    "entity-memma": _typed,
    "memma": _memory,
    "memn2n": _memory,
    "memr": _memory,
    "seq2seq": _seq2seq,
    "supervised-embeddings": _typed,
}

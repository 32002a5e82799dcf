"""Small models of dialog, a small domain that they are about, and their equations in loops."""

import functools
import itertools

import numpy as np
import reference as ref
from helpers import randomised
from reference_recurrent import log_softmax, sentence_in_loops

from colloquy.data.vocabulary import Vocabulary
from colloquy.layers.dialog_state import FLAGS
from colloquy.models import MODELS
from colloquy.tasks.dialog.domain import Domain, Entity
from colloquy.tasks.dialog.split import SPEAKERS as SPOKEN_BY
from colloquy.tasks.dialog.split import DialogSplit, encode_dialog

NAMES = ("memma", "entity-memma", "memn2n", "memr", "supervised-embeddings")
DROPPING = {"dropout": 0.5}

V, D, R, E, C = 31, 14, 3, 11, 13  # words, features, turn distances, entities, candidates
SMALL = {"embedding_dim": D, "time_limit": R}

# === A small domain ===
# The last E words are the entities: the first 9 of type 0, the others of type 1. Those of type 0
# are read as one.


def type_of(entity):
    return 0 if entity < 9 else 1


def entities_in(words):
    return [word - (V - E + 1) for word in words if word > V - E]


def typed(words):
    return [V + 1 if word in range(V - E + 1, V - E + 10) else word for word in words]


@functools.cache
def candidates():
    """Lists of ids: the first has one word, the next two entities of one type, the third no
    entity, and the last two have the template of the second.
    """
    rng = np.random.default_rng(11)
    some = [rng.integers(3, V + 1, rng.integers(2, 6)).tolist() for _ in range(C - 5)]
    return [[4], [V - 10, 3, V - 9], [5, 6, 7], *some, [V - 4, 3, V - 8], [V - 9, 3, V - 6]]


@functools.cache
def domain():
    names = [f"word{id}" for id in range(3, V + 1)]
    vocabulary = Vocabulary(("_EOS_", "_UNK_", *names))
    texts = [" ".join(map(vocabulary.word, ids)) for ids in candidates()]
    entities = [
        Entity(name, f"type{type_of(entity)}", "knowledge")
        for entity, name in enumerate(names[-E:])
    ]
    return Domain(vocabulary, texts, [], entities)


# Speakers of each dialog. The first turn of two of them has no history.
BY = {"U": "user", "B": "bot", "K": "fact"}
SPEAKERS = ("KKUBUBKUBUBU", "UBUBKB", "U")
ANSWERS = ([3, 7, 12, 0, 5], [3, 9], [1])


@functools.cache
def texts():
    """Three dialogs of 5, 2 and 1 turns, of sentences of 1 to 7 words: lists of lists of ids."""
    rng, longest = np.random.default_rng(0), zip((8, 5, 3), SPEAKERS, strict=True)
    found = [
        [rng.integers(3, V + 1, rng.integers(1, n)).tolist() for _ in says] for n, says in longest
    ]
    found[1][1] = found[1][3] = found[0][5]  # a sentence that is said again
    found[0][3] = candidates()[1]  # the bot says a candidate
    found[2][0] = [5, V - 10]  # an entity of the answer alone
    return found


def split_of(domain, dialogs, answers=()):
    """A split of dialogs, lists of `(speaker, text)`; without `answers` they are the responses of
    the bot.
    """
    sentences, encoded = {}, []
    for said, given in itertools.zip_longest(dialogs, answers):
        coded = encode_dialog(said, sentences)
        given = given or [
            domain.candidate_numbers[text] for speaker, text in said if speaker == "bot"
        ]
        encoded.append({**coded, "answers": [*given, *[0] * (len(coded["turns"]) - len(given))]})
    return DialogSplit(domain.encode([text.split() for text in sentences]), encoded)


@functools.cache
def split():
    def text(ids):
        return " ".join(map(domain().vocabulary.word, ids))

    spoken = zip(SPEAKERS, texts(), strict=True)
    said = [
        [(BY[letter], text(ids)) for letter, ids in zip(says, each, strict=True)]
        for says, each in spoken
    ]
    return split_of(domain(), said, ANSWERS)


def batch(model, rows=(0, 1, 2), more=0):
    """Inputs and answers of some dialogs; with `more` their sizes are multiples of it."""
    return split().collate(rows, model.config.reads, E, more or 1)


def real(logits, row):
    """The logits of a dialog's turns without padding."""
    return logits[: len(ANSWERS[row])]


def config(name, **settings):
    hops = {} if name == "supervised-embeddings" else {"hops": 2}
    heads = {"heads": 2} if name.endswith("memma") else {}
    if name == "entity-memma":
        settings = {"templates": len(domain().tables.templates), **settings}
    return MODELS[name].config(
        **{**domain().tables.required_fields, "max_words": 7, **SMALL, **hops, **heads, **settings}
    )


def fresh(name, **settings):
    """A model as it starts, with the candidates."""
    model = MODELS[name].build(config(name, **settings))
    domain().tables.put_into(model)
    return model


@functools.cache
def made(name, **settings):
    """A model with random weights, shared by the tests: do not change it."""
    return randomised(fresh(name, **settings), 1, 0.3)


# === Equations ===


def in_loops(model, name, row):
    """The logits of one dialog, `(T, C)`, turn by turn."""
    c, layer, dialog = model.config, model.get_layer, split().dialogs[row]
    speakers, turns = dialog["speakers"], dialog["turns"]
    said, offered = texts()[row], candidates()
    who = {number: name for name, number in SPOKEN_BY.items()}
    heard = [
        (who[by], " ".join(map(domain().vocabulary.word, ids)))
        for by, ids in zip(speakers, said, strict=True)
    ]
    mentions = np.array([[e in entities_in(words) for e in range(E)] for words in said])
    if name == "entity-memma":
        said, offered = [typed(words) for words in said], [typed(words) for words in offered]
    both = layer("bag_of_words" if name.endswith("memma") else "candidate_embedding")
    candidate_vectors = [ref.sum_in_loops(words, both) for words in offered]
    encode = {"memn2n": "memory_embedding", "supervised-embeddings": "conversation_embedding"}.get(
        name, "bag_of_words"
    )
    if name == "memr":
        x = [sentence_in_loops(words, layer("sentence_gru")) for words in said]
    elif getattr(c, "encoding", "sum") == "sum":
        x = [ref.sum_in_loops(words, layer(encode)) for words in said]
    else:
        x = [ref.ordered_in_loops(words, layer(encode)) for words in said]
        if name.endswith("memma"):  # candidates are sums without positions
            table = both.scale * both.embeddings.numpy()
            candidate_vectors = [table[words].sum(axis=0) for words in offered]
    before, seen = (
        ref.seen_in_loops(speakers, turns),
        ref.seen_in_loops(speakers, turns, including_turn=True),
    )

    logits = np.zeros((len(turns), C))
    for t, place in enumerate(turns):
        u = start = x[place]
        if name == "entity-memma":
            names, met = track(domain(), heard[: place + 1])
            known = [name in names for name in (*domain().types, *FLAGS)]
            u = start = u + known @ layer("known").kernel.numpy()
        memory = np.array(x)
        if c.speaker and c.hops:
            memory = memory + layer("speaker").table.numpy()[speakers]
        latest, times = memory, np.zeros_like(memory)
        if c.time and c.hops:
            times = layer("time").table.numpy()[
                [min(max(t - time, 0), R - 1) for time in dialog["times"]]
            ]
        memory = memory + times
        for hop in range(getattr(c, "hops", 0)):
            attend = layer(f"attention_{hop}" if name.endswith("memma") else "attention")
            assert attend.divisor == (
                1 if not name.endswith("memma") else D if c.divisor == "dimension" else D**0.5
            )
            o = ref.hop_in_loops(u[None], (latest + times)[None], before[None, t], attend)[0][0]
            if not name.endswith("memma"):
                o = o @ layer("output_projection").kernel.numpy()
            join = layer(f"shortcut_{hop}")
            gate = c.gate if name.endswith("memma") else "sigmoid"
            kind = "gated" if getattr(c, "gated", False) else getattr(c, "shortcut", "identity")
            assert join.kind == kind and (kind != "gated" or join.activation == gate)
            u = ref.join_in_loops(o, u, join)
            if getattr(c, "memory", "sentences") == "latest":
                upto = np.tri(len(x), dtype=bool)
                read, _ = ref.hop_in_loops(latest, np.array([latest] * len(x)), upto, attend)
                latest = np.array(
                    [ref.join_in_loops(*each, join) for each in zip(read, latest, strict=True)]
                )
        if name.endswith("memma") and c.hops:
            u = start + u  # eq. 15
        if name == "supervised-embeddings":
            u = sum(x[m] for m in range(place + 1))
        mentioned = {e for m in range(place + 1) for e in range(E) if mentions[m, e]}
        for i, vector in enumerate(candidate_vectors):
            logits[t, i] = u @ vector
            if c.match_types:
                bits = {type_of(e) for e in entities_in(candidates()[i]) if e in mentioned}
                logits[t, i] += sum(u @ layer("match_types").type_YD.numpy()[y] for y in bits)
        if name == "entity-memma":
            conditions = np.array([[e in each for each in met] for e in range(E)])
            scores = ref.point_in_loops(
                u, memory, seen[t], mentions, layer("entity_pointer"), conditions
            )
            gain = [sum(scores[e] for e in entities_in(words)) for words in candidates()]
            of_templates = templates_in_loops(layer, said[place], u, known, heard[:place])
            logits[t] = share_in_loops(of_templates, gain)
    return logits


def templates_in_loops(layer, asked, state, known, before):
    """The logits of templates at a turn: of the user's words, the state and the last template."""
    responses = [text for speaker, text in before if speaker == "bot"]
    last = 0
    if responses and responses[-1] in domain().candidates:
        last = 1 + domain().tables.template_numbers[domain().candidates.index(responses[-1])]
    features = [*state, *known, *np.eye(1 + len(domain().tables.templates))[last]]
    project = layer("template_features")
    x = ref.sum_in_loops(asked, layer("template_words"))
    x = x + ref.state_vector_in_loops(known, layer("state_vector"))
    x = x + features @ project.kernel.numpy() + project.bias.numpy()
    output = layer("templates")
    return np.maximum(x, 0) @ output.kernel.numpy() + output.bias.numpy()


def share_in_loops(of_templates, gain):
    """The logits of candidates from those of templates and the gain of each candidate."""
    templates = domain().tables.template_numbers
    logits = []
    for template, own in zip(templates, gain, strict=True):
        same = [other for number, other in zip(templates, gain, strict=True) if number == template]
        log_share = log_softmax(np.array(same, float))[same.index(own)]
        logits.append(log_softmax(of_templates)[template] + log_share)
    return np.array(logits)


def track(domain, said):
    """The names of the state after some sentences, and the entities that meet each condition, in
    plain loops.
    """
    types = [type for _, type, _ in domain.entities]
    calls = {text for text in domain.candidates if text.startswith("api_call")}
    slots = {
        types[number - 1]
        for text in calls
        for _, numbers in domain.names.link(text.split())
        for number in numbers
    }
    wishes, flags, heard, found, told, offer = {}, set(), set(), set(), set(), None
    for speaker, text in said:
        parts = domain.names.link(text.split())
        entities = [number - 1 for _, numbers in parts for number in numbers]
        before = dict(wishes)
        for number in entities if speaker == "user" else ():
            if types[number] in slots and number != before.get(types[number]):
                wishes[types[number]] = number
        if speaker == "user":
            flags = flags - {"silent"} | ({"silent"} if text == "<SILENCE>" else set())
        call = speaker == "bot" and text.startswith("api_call")
        if call or ("called" in flags and wishes != before):
            found, told, offer = set(), set(), None
            flags = flags - {"changed", "nothing"} | ({"called"} if call else {"changed"})
        heard |= set(entities)
        found |= set(entities) if speaker == "fact" else set()
        told |= set(entities) if speaker == "bot" else set()
        flags |= {"nothing"} if speaker == "fact" and not entities else set()
        if speaker == "bot":
            offer = max(
                (number for number in entities if types[number] == "restaurant"), default=offer
            )
    owned = set()
    if offer is not None:
        others = {
            value for subject, _, value in domain.knowledge if subject != domain.entities[offer][0]
        }
        known = {
            value for subject, _, value in domain.knowledge if subject == domain.entities[offer][0]
        } - others
        owned = {
            offer,
            *(number for number, (name, _, _) in enumerate(domain.entities) if name in known),
        }
    flags |= ({"found"} if found else set()) | ({"offered"} if offer is not None else set())
    everything = set(range(len(types)))
    return set(wishes) | flags, (heard, set(wishes.values()), found, everything - told, owned)


def loss_in_loops(logits):
    """The mean over all real turns of the cross-entropy of the right candidate."""
    losses = []
    for of_dialog, answers in zip(logits, ANSWERS, strict=True):
        losses += [
            -log_softmax(row)[answer] for row, answer in zip(of_dialog, answers, strict=True)
        ]
    return np.mean(losses)

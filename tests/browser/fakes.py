"""Models of each task that answer at once, with fixed answers."""

import time

from colloquy.base.config import Config
from colloquy.base.files import UserError
from colloquy.serving.run_facts import render_markdown

CARD = "# A card\n\nWhat it **cannot** do.\n\n<script>alert(1)</script>"


class Anything(Config, extra="allow"):
    """An instance or an answer."""


class Fake:
    """A model of one task; keeps the instances that it was given.

    While `held` has "card", "loading", "answer" or "attention", that is not finished.
    """

    ready = True
    damage = ""
    """Why it cannot be loaded."""
    Instance = Answer = Anything
    chats = True

    def __init__(self, task, answer, examples=(), name=None, **facts):
        self.name = name or f"fake-{task}"
        self.task = task
        self.answer = answer
        self.examples = list(examples)
        self.facts = facts
        self.predictor_class = type(self)
        self.asked = []
        self.held = set()

    def wait(self, step):
        while step in self.held:
            time.sleep(0.01)

    # === What the server asks for ===

    def card(self):
        self.wait("card")
        return self.make_card()

    def make_card(self):
        facts = {
            "name": self.name,
            "version": "1",
            "task": self.task,
            "model": "fake",
            "corpus": "a test",
            "title": f"Title of {self.name}",
            "label": "",
            "default": False,
            "note": "",
            "scores": {"dev": {"R10@1": 0.5}},
            "examples": self.examples,
            "card_html": render_markdown(CARD),
        }
        return {**facts, **self.facts}

    def summary(self):
        return {**self.make_card(), "ready": self.ready}

    @property
    def predictor(self):
        """Loads the model."""
        self.wait("loading")
        if self.damage:
            raise UserError(self.damage)
        return self

    def describe(self):
        return self.make_card()

    def make_instance(self, instance, where):
        return instance if isinstance(instance, dict) else instance.model_dump()

    def padded_rows(self, instance):
        return 1

    def count_tokens(self, text):
        return len(text.split())

    def answer_as_dicts(self, instances):
        self.asked += instances
        self.wait("answer")
        return [self.answer(instance) for instance in instances]

    def conversation(self, said, decode=""):
        return {"turns": [text for _, text in said], "decode": decode}

    def reply(self, answer):
        return answer["response"]

    def explain(self, instance):
        [answer] = self.answer_as_dicts([instance])
        self.wait("attention")
        maps = {
            "selection": self.matches,
            "reading_comprehension": self.flow,
            "generation": self.sources,
            "dialog": self.memories,
        }
        return {**answer, "attention": maps[self.task](instance, answer)}

    # === Attention ===

    def matches(self, instance, answer):
        rows = instance["turns"][-1].split()
        columns = instance["candidates"][0].split()
        weights = [[float(row == column) for column in columns] for row in rows]
        return [{"title": "turn 1", "rows": rows, "columns": columns, "weights": weights}]

    def flow(self, instance, answer):
        window = slice(answer["window_start"], answer["window_end"])
        words = instance["passage"][window].split()
        question = instance["question"].split()
        here = [float(word.strip(".") == answer["answer"]) for word in words]
        probabilities = {"title": "probabilities", "rows": ["start", "end"], "columns": words}
        attention = {"title": "p to q", "rows": words, "columns": question}
        return [
            {**probabilities, "weights": [here, here]},
            {**attention, "weights": [[0.01] * len(question)] * len(words)},
        ]

    def sources(self, instance, answer):
        rows = answer["response"].split()
        columns = instance["turns"][-1].split()
        weights = []
        for i in range(len(rows)):
            weights.append([float(j == i % len(columns)) for j in range(len(columns))])
        return [{"title": "source", "rows": rows, "columns": columns, "weights": weights}]

    def memories(self, instance, answer):
        rows = [f"{turn['speaker']}: {turn['text']}" for turn in instance["history"]]
        weights = [[1 / len(rows)]] * len(rows)
        return [{"title": "memories", "rows": rows, "columns": ["hop 1"], "weights": weights}]


# === Answers ===


def rank(instance):
    """The shortest candidates first; without any, twenty of an index."""
    index = {}
    candidates = instance.get("candidates")
    if not candidates:
        candidates = [f"response {number}" for number in range(20)]
        index = {
            "candidates": candidates,
            "said_to": [["hi", "so"]] * 20,
            "totals": [-float(number) for number in range(20)],
        }
    scores = [1 / (1 + len(text)) for text in candidates]
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    answer = {"scores": scores, "order": list(range(20)) if index else order}
    if not index:
        answer["logits"] = [-float(len(text)) for text in candidates]
    return {**answer, **index}


def read(instance):
    """The last word of the question; one with x may not be answered."""
    text = instance["passage"]
    word = instance["question"].split()[-1].strip("?")
    start = max(text.find(word), 0)
    is_good = not word.startswith("x")
    span = {"answer": word, "start": start, "end": start + len(word), "score": 0.9}
    span["confidence"] = 0.75 if is_good else 0.18
    other = {**span, "answer": "Ann", "start": 0, "end": 3, "confidence": 0.125}
    return {
        **span,
        "good": is_good,
        "verdict": "likely" if is_good else "probably not in this text",
        "threshold": 0.2,
        "unknown_percent": 12.5,
        "window_start": 0,
        "window_end": len(text),
        "n_best": [span, other],
    }


def write(instance):
    texts = [f"you said: {instance['turns'][-1]}", "something else"]
    best = [{"text": text, "score": score} for text, score in zip(texts, (0.5, -1.0), strict=True)]
    doubt = {}
    if texts[0].endswith("xxx"):
        doubt = {"good": False, "reason": "it knows no word of it"}
    return {"response": texts[0], "best": best, **doubt}


def respond(instance):
    """Responds as the dialog `A_DIALOG` has it, but for its second response; a rule refuses x."""
    user = instance["history"][-1]["text"]
    response = {"hi": "hello", "a table": "how many", "": "api_call rome"}.get(user, "ok")
    best = [{"text": response, "score": 0.8}, {"text": "so", "score": 0.2}]
    said = [{"speaker": "bot", "text": response}]
    if user == "rome":
        said.append({"speaker": "fact", "text": "casa R_location rome"})
        said.append({"speaker": "user", "text": ""})
        said.append({"speaker": "bot", "text": "what about casa"})
    is_refused = user.startswith("x")
    return {"response": response, "best": [] if is_refused else best, "said": said}


# === The models that the tests serve ===

TABLE = {
    "turns": ["hi", "which table ?"],
    "candidates": ["the one at the window", "no", "perhaps"],
}
WEATHER = {"turns": ["is it cold ?"], "candidates": ["very cold", "yes"]}
PEOPLE = {"passage": "Ann lives in Rome. Bob lives in Paris.", "question": "Who lives in Paris"}
OPENINGS = ["tea ?", "hi", "good evening", "how are you"]
A_DIALOG = [
    {"speaker": "user", "text": "hi"},
    {"speaker": "bot", "text": "hello"},
    {"speaker": "user", "text": "a table"},
    {"speaker": "bot", "text": "where"},
    {"speaker": "fact", "text": "casa R_location rome"},
    {"speaker": "fact", "text": "casa R_phone casa_phone"},
    {"speaker": "user", "text": "<SILENCE>"},
]


def make_models():
    """Returns `{name: Fake}`."""
    talks = [{"title": text, "instance": {"turns": [text, "well"]}} for text in OPENINGS]
    people = {"title": "Task 6: People", "instance": {"history": A_DIALOG[:3]}}
    table_in_rome = {"title": "Task 1: Rome", "instance": {"history": A_DIALOG}}
    table = {"title": "A table", "instance": TABLE, "expected": ["perhaps"]}
    models = [
        Fake(
            "selection",
            rank,
            [{**table, "source": "dev, context 1"}, {"title": "Weather", "instance": WEATHER}],
            responses=2345,
        ),
        Fake(
            "reading_comprehension",
            read,
            [{"title": "Two people", "instance": PEOPLE, "expected": ["Paris"]}],
        ),
        Fake("generation", write, [], name="a-other-talk", label="中文"),
        Fake("generation", write, talks, label="English", default=True),
        Fake(
            "dialog",
            respond,
            [{**table_in_rome, "expected": ["api_call rome"]}],
            label="Tasks 1 to 5",
            default=True,
            lead="Its restaurants are invented.",
        ),
        Fake("dialog", respond, [people], name="a-other-dialog", label="Task 6"),
    ]
    return {model.name: model for model in models}

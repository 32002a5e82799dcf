"""A response-selection model that answers plain text, with an index to take candidates from where none are given."""

from engine.predictor import Predictor
from tasks.selection.retrieval.answers import Retriever

SHOWN = 20  # answers of the index that are listed


class AnsweringPredictor(Predictor):
    """Ranks candidate responses to a conversation, given ones or those that an index finds.

    An answer to given candidates is that of `tasks.selection.predictor.SelectionPredictor`. Of an instance without
    candidates, `candidates` are the best that the index has, best first (`Retriever.answers`,
    which counts how alike the questions are beside the model's score), `scores` are the model's, and `said_to` has for
    each the turns that it was once said to.

    Args:
        predictor: A `tasks.selection.predictor.SelectionPredictor`.
        index: Directory of an index for the same vocabulary.

    Raises:
        UserError: as of `tasks.selection.retrieval.index.RetrievalIndex`.
    """

    def __init__(self, predictor, index):
        self.predictor, self.retriever = predictor, Retriever(predictor, index)
        self.responses = self.retriever.index.config["responses"]
        described = {
            "default": [],
            "description": f"Responses to choose from; none: those of an index of {self.responses:,} responses.",
        }
        self.fields = {**predictor.fields, "candidates": {**predictor.fields["candidates"], **described}}

    def answer(self, instances):
        given = [instance for instance in instances if instance["candidates"]]
        ranked = iter(self.predictor.answer(given) if given else [])
        return [next(ranked) if instance["candidates"] else self._found(instance) for instance in instances]

    def answer_with_attention(self, instance):
        """As of `Predictor`: of the best candidate."""
        if instance["candidates"]:
            return self.predictor.answer_with_attention(instance)
        found = self._found(instance)
        best = {**instance, "candidates": found["candidates"][:1]}
        return {**found, "attention": self.predictor.answer_with_attention(best)["attention"]}

    def _found(self, instance):
        answers = self.retriever.answers(instance["turns"])[:SHOWN]
        return {
            "candidates": [answer.text for answer in answers],
            "scores": [answer.score for answer in answers],
            "order": list(range(len(answers))),
            "said_to": [list(answer.hit.context) for answer in answers],
        }

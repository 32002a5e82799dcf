"""A response-selection model that answers plain text, with an index to take candidates from where none are given."""

from engine.predictor import Predictor
from tasks.selection.predictor import SelectionPredictor
from tasks.selection.retrieval.answers import Retriever

SHOWN = 20  # answers of the index that are listed


class AnsweringPredictor(Predictor):
    """Ranks candidate responses to a conversation, given ones or those that an index finds.

    Args:
        predictor: A `tasks.selection.predictor.SelectionPredictor`.
        index: Directory of an index for the same vocabulary.

    Raises:
        UserError: as of `tasks.selection.retrieval.index.RetrievalIndex`.
    """

    class Instance(SelectionPredictor.Instance):
        """A conversation, and responses to it if there are any."""

        candidates: list[str] = []
        """Responses to choose from; none: those of the index."""

    class Answer(SelectionPredictor.Answer):
        """Scores of the candidates; of those of the index `scores` are the model's, without `logits`."""

        logits: list[float] = []
        candidates: list[str] = []
        """The best of the index, the best first (`Retriever.answers`, which counts how alike the questions are beside
        the model's logit); missing if the instance has candidates."""
        said_to: list[list[str]] = []
        """For each of them the turns that it was once said to."""

    def __init__(self, predictor, index):
        self.predictor, self.retriever = predictor, Retriever(predictor, index)
        self.responses = self.retriever.index.config["responses"]

    def answer(self, instances):
        given = [instance for instance in instances if instance.candidates]
        ranked = iter(self.predictor.answer(given) if given else [])
        return [next(ranked) if instance.candidates else self._found(instance) for instance in instances]

    def answer_with_attention(self, instance, details):
        """As of `Predictor`: of the best candidate."""
        if instance.candidates:
            return self.predictor.answer_with_attention(instance, details)
        found = self._found(instance)
        best = instance.replace(candidates=found.candidates[:1])
        return found, self.predictor.answer_with_attention(best, details)[1]

    def _found(self, instance):
        answers = self.retriever.answers(instance.turns)[:SHOWN]
        return self.Answer(
            candidates=[answer.text for answer in answers],
            scores=[answer.score for answer in answers],
            order=list(range(len(answers))),
            said_to=[list(answer.hit.context) for answer in answers],
        )

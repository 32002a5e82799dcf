"""Answers by retrieval: candidates are found, then ranked (Zhou et al. 2018, section 1)."""

from colloquy.base.files import UserError
from colloquy.engine.helplines import helpline_of_turns
from colloquy.engine.parallel import in_order
from colloquy.engine.predictor import Predictor
from colloquy.tasks.selection.predictor import SelectionPredictor
from colloquy.tasks.selection.retrieval.responses import IndexedResponses, ListedResponses
from colloquy.tasks.selection.retrieval.run_index import index_of_run

# Weight of the questions' similarity beside the model's logit; chosen on dev, docs/retrieval.md.
QUESTION_WEIGHT = 16.0
# Answers that a predictor lists.
SHOWN = 20
NOTHING_FOUND = "the index has no response with these words that was not said before"


class AnsweringPredictor(Predictor):
    """Answers conversations from responses of its own; ranks the candidates of an instance that has
    some, as `SelectionPredictor` does.

    Args:
        predictor: `SelectionPredictor`, which ranks.
        index: Directory of an index with the responses.
        candidates: List of the responses, in place of an index.
    """

    class Instance(SelectionPredictor.Instance):
        """A conversation, and responses to it if there are any."""

        candidates: list[str] = []
        """Responses to choose from; none: those of the model's index or list."""

    class Answer(SelectionPredictor.Answer):
        """Scores of the candidates. If the instance has none, `candidates` are the best responses
        of the model's index or list, and there are `totals` in place of `logits`."""

        logits: list[float] = []
        totals: list[float] = []
        """The numbers by which `candidates` are ordered: the model's logit, with an index plus 16
        times the similarity of the last turn and the turn that the response once answered."""
        candidates: list[str] = []
        """The best responses, the best first; missing if the instance has candidates."""
        said_to: list[list[str]] = []
        """With an index: for each response, the turns that it once followed."""

    def __init__(self, predictor, index=None, candidates=None):
        if (index is None) == (candidates is None):
            raise UserError("expected an index or a list of candidates, one of them")
        self.predictor = predictor
        if index is not None:
            self.source = IndexedResponses(index, predictor.vocabulary)
        else:
            self.source = ListedResponses(candidates)
        self.responses = self.source.num_responses

    def answer(self, instances):
        return list(in_order(self._answer, instances))

    def _answer(self, instance):
        if instance.candidates:
            [answer] = self.predictor.answer([instance])
            return answer
        answer, _ = self._find_answer(instance)
        return answer

    def answer_with_attention(self, instance, details):
        if instance.candidates:
            return self.predictor.answer_with_attention(instance, details)
        answer, hits = self._find_answer(instance)
        # The model attends to the text as it reads it; the answer shows it as people write.
        best_texts = [hit.text for hit in hits[:1]]
        _, attention = self.predictor.answer_with_attention(
            instance.replace(candidates=best_texts), details
        )
        return answer, attention

    def _find_answer(self, instance):
        """Answers an instance without candidates.

        Returns:
            The answer.
            The `Hit`s that it shows, the best first.
        """
        hits = self.source.find(instance.turns)
        if not hits:
            nothing = self.Answer(
                candidates=[],
                said_to=[],
                scores=[],
                totals=[],
                order=[],
                good=False,
                reason=NOTHING_FOUND,
            )
            return nothing, []

        texts = [hit.text for hit in hits]
        [ranking] = self.predictor.answer([instance.replace(candidates=texts)])
        rows = []
        for hit, score, logit in zip(hits, ranking.scores, ranking.logits, strict=True):
            total = logit + QUESTION_WEIGHT * hit.question_similarity
            rows.append((total, score, hit))
        rows.sort(key=lambda row: -row[0])
        totals, scores, best_hits = zip(*rows[:SHOWN], strict=True)
        answer = self.Answer(
            scores=list(scores),
            totals=list(totals),
            order=list(range(len(best_hits))),
            **self.source.fields(best_hits, self.predictor.text.tokenizer),
            **ranking.model_dump(include={"good", "reason"}, exclude_unset=True),
        )
        return answer, best_hits

    def helpline_answer(self, instance):
        helpline = helpline_of_turns(instance.turns)
        if instance.candidates or helpline is None:
            return None
        return self.Answer(candidates=[helpline], scores=[1.0], totals=[0.0], order=[0], good=True)

    def padded_rows(self, instance):
        """A row for each candidate that is ranked."""
        return len(instance.candidates) or self.source.num_candidates

    # === Conversations ===

    def conversation(self, said, decode=""):
        # `decode` is for models that write their replies.
        return {"turns": [text for _, text in said]}

    def reply(self, answer):
        return answer["candidates"][0] if answer["candidates"] else answer["reason"]


def add_responses(predictor, run, index, candidates):
    """Returns a predictor that has responses of its own.

    Args:
        predictor: The `SelectionPredictor` of the run.
        run: `engine.run.Run`.
        index, candidates: See `AnsweringPredictor`. If both are `None`, the index is that of
            `retrieval.run_index.index_of_run`; if there is none, `predictor` is returned.
    """
    if index is None and candidates is None:
        index = index_of_run(run.path, predictor)
        if index is None:
            return predictor
    return AnsweringPredictor(predictor, index, candidates)

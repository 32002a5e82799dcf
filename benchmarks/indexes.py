"""What the benchmarks of answers by retrieval share."""


def open_run(run, precision):
    """The predictor of a run, computing in `precision`."""
    from engine.devices import set_precision
    from engine.run import Run
    from tasks import TASKS

    set_precision(precision)
    opened = Run.open(run)
    return TASKS[opened.task].predictor(opened)


def conversations(corpus, source, split, count=0):
    """The conversations of a split of a corpus: so many, evenly spaced; 0: all."""
    from tasks.selection.retrieval.build import of_corpus

    every = list(of_corpus(corpus, source, split))
    return every[:: max(1, len(every) // count)][:count] if count else every


def build(path, talks, predictor):
    """An index of some conversations, opened."""
    from tasks.selection.retrieval.build import build_for
    from tasks.selection.retrieval.index import RetrievalIndex

    build_for(predictor, path, talks)
    return RetrievalIndex(path, predictor.vocabulary)

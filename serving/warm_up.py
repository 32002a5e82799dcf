"""First answers of models, so that nothing is compiled when the first client asks."""

import contextlib
import gc
import json
import sys
import threading

from colloquy.base.files import UserError

# Searches beside the run's own, whose compilation no client shall wait for.
DECODES = ("beam=1", "beam=5", "beam=10", "sample=true,temperature=0.8,top_p=0.9")
TEXT = "people say that it is a good day in the town and that all is well"
LONG_TEXT = " ".join([TEXT] * 8)


def make_instances(instance_class):
    """Makes instances of a task, a short one and a long one; none of a task that is not known.

    They do not depend on what a run brings: its examples may be long, or many.
    """
    fields = instance_class.model_fields
    instances = []
    for text in (TEXT, LONG_TEXT):
        if "passage" in fields:
            instances.append({"passage": text, "question": TEXT})
        elif "history" in fields:
            # The user is silent at last: to unknown words a bot replies without its network.
            sentences = [{"speaker": "user", "text": said} for said in (text, "")]
            instances.append({"history": sentences})
        elif "decode" in fields:
            for decode in ("", *DECODES):
                instances.append({"turns": [text], "decode": decode})
        elif "candidates" in fields:
            instances.append({"turns": [text], "candidates": [TEXT, text]})
            if not fields["candidates"].is_required():  # the index finds them
                instances.append({"turns": [text]})
    return instances


def answer_first(predictor):
    """Has a model that was just loaded answer a text; a `UserError` if it answers with NaN."""
    for instance in make_instances(predictor.Instance)[:1]:
        answers = predictor.predict([instance])
        try:
            json.dumps(answers, allow_nan=False)
        except ValueError as error:
            raise UserError("its answers have NaN or infinity: it is damaged") from error


def warm_up(predictor, pause=lambda: None):
    """Answers and explains texts alone and together. `pause()` is called before each."""
    instances = make_instances(predictor.Instance)
    for instance in instances:
        pause()
        predictor.predict([instance])
        predictor.explain(instance)
    if instances:
        pause()
        predictor.predict(instances)


@contextlib.contextmanager
def warming(models, is_busy):
    """Loads and warms up the models on a thread, while `is_busy()` is false.

    Args:
        models: `serving.models.Served`s.
        is_busy: Zero-argument function; true while the server answers requests.
    """
    stopped = threading.Event()

    def pause():
        while is_busy() and not stopped.wait(0.1):
            pass
        if stopped.is_set():
            raise InterruptedError

    def prepare():
        for model in models:
            if model.ready:
                continue
            try:
                pause()
                warm_up(model.predictor, pause)
            except InterruptedError:
                return
            except Exception as error:  # the other models are still to be warmed up
                print(f"{model.name} cannot answer: {error}", file=sys.stderr, flush=True)
        freeze()

    thread = threading.Thread(target=prepare)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def freeze():
    """Hides loaded objects from the garbage collector.

    There are half a million of them; a full collection would take 250 ms each time.
    """
    gc.collect()
    gc.freeze()

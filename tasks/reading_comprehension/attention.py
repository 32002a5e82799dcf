"""The attention of BiDAF's attention flow, as maps that people can look at.

Letters: W words of a passage   J question words   D features
"""

import keras
import numpy as np
import scipy.special

from colloquy.engine.parallel import compile_for_all_sizes
from colloquy.engine.predictor import attention_map


class FlowMaps:
    """Makes attention maps with the `layers.attention_flow` of a `models.bidaf.BiDAF`."""

    def __init__(self, model):
        self.flow = model.get_layer("attention_flow")
        # The inputs of the layer are the encoded passage, the encoded question and their masks.
        passage, question, *_ = self.flow.input
        self.encoder = keras.Model(model.input, [passage, question])
        compile_for_all_sizes(self.encoder)

    def maps(self, inputs, passage_words, question_words):
        """The maps of one question: of the passage's words to those of the question, and back.

        Args:
            inputs: The model's inputs, a batch of this question. It has no padding, so the layer
                needs no mask.
            passage_words: The words that are read of the passage, texts.
            question_words: The words of the question, texts.
        """
        passage_1WD, question_1JD = self.encoder.predict_on_batch(inputs)
        similarity_1WJ = self.flow.similarity(passage_1WD, question_1JD)
        similarity_WJ = np.asarray(similarity_1WJ[0], np.float64)
        maps = []
        if self.flow.c2q:
            weights_WJ = scipy.special.softmax(similarity_WJ, axis=1)
            title = "passage attends to question"
            maps.append(attention_map(title, passage_words, question_words, weights_WJ))
        if self.flow.q2c:
            # The question as a whole attends to a word as much as its most similar word.
            weights_W = scipy.special.softmax(similarity_WJ.max(axis=1))
            title = "question attends to passage"
            maps.append(attention_map(title, ["question"], passage_words, weights_W[None]))
        return maps

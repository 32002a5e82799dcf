"""`layers.attention_flow` against loops over the paper's equations (Seo et al. 2017)."""

import numpy as np
import pytest
from helpers import to_numpy
from layer_cases import D, J, T, built, floats, real
from reference import flow_in_loops

from layers.attention_flow import AttentionFlow


@pytest.mark.parametrize(
    "name", ["AttentionFlow", "AttentionFlow, dot", "AttentionFlow, ablations", "AttentionFlow, perceptrons"]
)
def test_attention_flow_matches_equations_1_and_2(name):
    layer, inputs = built(name)
    G, (context, query, t_mask, j_mask) = to_numpy(layer(*inputs)), inputs
    assert G.shape[-1] == D * (4 if layer.q2c else 3)
    for b, (t, j) in enumerate(zip(t_mask.sum(axis=1), j_mask.sum(axis=1), strict=True)):
        np.testing.assert_allclose(G[b, :t], flow_in_loops(context[b, :t], query[b, :j], layer), atol=1e-4)


def test_attention_flow_without_c2q_still_attends_the_other_way():
    layer, inputs = AttentionFlow(c2q=False), built("AttentionFlow")[1]
    G, (context, query, t_mask, j_mask) = to_numpy(layer(*inputs)), inputs
    for b, (t, j) in enumerate(zip(t_mask.sum(axis=1), j_mask.sum(axis=1), strict=True)):
        np.testing.assert_allclose(G[b, :t], flow_in_loops(context[b, :t], query[b, :j], layer), atol=1e-5)


def test_attention_flow_may_start_as_a_dot_product():
    layer = AttentionFlow(start="dot")
    layer.build((None, None, D), (None, None, D))
    w = to_numpy(layer.w_3D)
    np.testing.assert_array_equal(w[2], 1)
    assert len(np.unique(w[:2])) == 2 * D and abs(w[:2]).max() < 1


def test_attention_flow_without_a_query_takes_nothing_from_it():
    G = to_numpy(AttentionFlow()(floats(1, T, D), floats(1, J, D), real(2, T)[:1], np.zeros((1, J), bool)))
    assert np.isfinite(G).all() and not G[..., D : 3 * D].any()

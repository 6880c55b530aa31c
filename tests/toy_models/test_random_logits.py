"""Models of random logits: any vocabulary, nothing stored, and a draft at an exact distance."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toy_models import NearbyModel, RandomLogitModel


def row(model, context):
    weights = np.exp(model.logits(context))
    return weights / weights.sum()


def total_variation(left, right):
    return float(abs(left - right).sum() / 2)


def test_equal_seeds_give_equal_logits_and_other_seeds_others():
    assert (RandomLogitModel(9, seed=5).logits((3,)) == RandomLogitModel(9, seed=5).logits((3,))).all()
    assert not np.isclose(RandomLogitModel(9, seed=5).logits((3,)), RandomLogitModel(9, seed=6).logits((3,))).any()


def test_the_logits_of_contexts_differ():
    model = RandomLogitModel(12, seed=1, order=2)
    contexts = [(), (0,), (1,), (0, 1), (1, 0), (1, 1), (11,), (1, 11), (11, 1)]
    assert len({model.logits(context).tobytes() for context in contexts}) == len(contexts)


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0])
def test_the_scale_is_the_standard_deviation(scale):
    logits = RandomLogitModel(100_000, seed=1, scale=scale).logits(())
    assert logits.std() == pytest.approx(scale, rel=0.02)
    assert abs(logits.mean()) <= 0.02 * scale


@pytest.mark.parametrize("model_order", [0, 1, 2])
def test_equal_state_keys_have_equal_rows_now_and_after_any_continuation(model_order):
    target = RandomLogitModel(3, seed=2, order=model_order)
    for model in (target, NearbyModel(target, distance=0.2, seed=3)):
        first = {}
        for prefix in (prefix for length in range(4) for prefix in product(range(3), repeat=length)):
            like = first.setdefault(model.state_key(prefix), prefix)
            for continuation in product(range(3), repeat=2):
                assert (model.score(prefix, continuation) == model.score(like, continuation)).all()
        assert len(first) == sum(3**length for length in range(model_order + 1))


def test_a_score_is_the_logits_after_each_prefix():
    model = RandomLogitModel(4, seed=1)
    expected = [model.logits(context) for context in [(2,), (0,), (3,)]]
    np.testing.assert_array_equal(model.score((1, 2), (0, 3)), expected)


def test_the_largest_vocabulary_needs_no_table():
    rows = 4
    tracemalloc.start()
    model = RandomLogitModel(200_000, seed=1)
    logits = model.score((), (199_999, 0, 7))
    del logits
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.score((), (199_999,)).shape == (2, 200_000)
    assert after < 100_000
    assert peak < (2 * rows + 1) * 200_000 * 8


@pytest.mark.parametrize("distance", [0.0, 1e-6, 0.2, 0.5])
@settings(deadline=None, derandomize=True, max_examples=40)
@given(vocabulary=st.sampled_from([5, 50, 1000]), target_seed=st.integers(0, 999), context=st.tuples(st.integers(0, 4)))
def test_the_distance_is_exact_unless_the_third_row_is_nearer(distance, vocabulary, target_seed, context):
    target = RandomLogitModel(vocabulary, seed=target_seed)
    draft = NearbyModel(target, distance=distance, seed=1000)
    third = RandomLogitModel(vocabulary, seed=1000, scale=3.0)
    farthest = total_variation(row(target, context), row(third, context))
    apart = total_variation(row(target, context), row(draft, context))
    assert apart == pytest.approx(min(distance, farthest), rel=0, abs=1e-12)


def test_the_distance_is_exact_at_the_largest_vocabulary():
    target = RandomLogitModel(200_000, seed=1)
    apart = total_variation(row(target, (7,)), row(NearbyModel(target, distance=0.3, seed=2), (7,)))
    assert apart == pytest.approx(0.3, rel=0, abs=1e-12)


def test_a_distance_of_one_is_the_third_row():
    target = RandomLogitModel(6, seed=1)
    third = row(RandomLogitModel(6, seed=2, scale=3.0), (4,))
    np.testing.assert_allclose(row(NearbyModel(target, distance=1, seed=2), (4,)), third, rtol=1e-14)


def test_one_token_leaves_no_room_for_a_distance():
    target = RandomLogitModel(1, seed=1)
    assert row(NearbyModel(target, distance=0.5, seed=2), ()).tolist() == [1.0]


def test_logits_too_wide_for_a_float_are_minus_infinity_without_a_warning():
    target = RandomLogitModel(50, seed=1, scale=300.0)
    logits = NearbyModel(target, distance=0.2, seed=2).logits(())
    assert logits.min() == -np.inf
    assert logits.max() < np.inf


def test_the_draft_has_the_order_and_the_vocabulary_of_its_target():
    target = RandomLogitModel(7, seed=1, order=3)
    draft = NearbyModel(target, distance=0.1, seed=2)
    assert (draft.vocabulary, draft.order, draft.kind) == (7, 3, "logits")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"vocabulary": 0}, "vocabulary: 0; expected 1 to 200000"),
        ({"vocabulary": 200_001}, "vocabulary: 200001; expected 1 to 200000"),
        ({"scale": -1.0}, "scale: -1.0; expected 0 or more"),
        ({"scale": float("nan")}, "scale: nan; expected 0 or more"),
        ({"order": -1}, "order: -1; expected 0 or more"),
    ],
)
def test_a_model_that_cannot_be_is_refused(values, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        RandomLogitModel(**({"vocabulary": 5, "seed": 1} | values))


@pytest.mark.parametrize("distance", [-0.1, 1.1, float("nan")])
def test_a_distance_that_is_no_total_variation_is_refused(distance):
    with pytest.raises(ValueError, match=f"^distance: {distance}; expected a total variation, 0 to 1$"):
        NearbyModel(RandomLogitModel(5, seed=1), distance=distance, seed=2)

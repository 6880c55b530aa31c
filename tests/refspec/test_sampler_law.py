"""The composite sampler, sampled: its tokens against the exact law of the target under every knob.

One test a setting of the knobs and a lookahead K, 24 in all. Each continues the empty prompt of the pair "context" by
K+1 tokens, so that a first loop can end in a bonus token, and compares the last min(K+1, 3) of them by chi-square with
the exact law of the baseline on the lifted rows.

Rule. Cells of probability zero must be empty. The other cells whose expected count is below 50 are pooled, smallest
first, until the pool's is not: the exact law and the planned number of samples decide which, before sampling. A p-value
below 1e-4 rejects. So a sampler that is right fails one test with probability at most 1.2e-4, and any of the 24 with
at most 3e-3; the seed is fixed by the test's name, so a verdict does not change from run to run.

Power. A law of the cells at a total variation of 0.041 (K = 1), 0.058 (K = 2) or 0.077 (K = 4) from the exact one is
rejected with probability at least 0.99; ``test_the_stated_power_is_reached`` computes it.
"""

from collections import Counter
from functools import cache, cached_property
from hashlib import sha256
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2, chisquare, ncx2

from refspec import CountedModel, SampledChance, SamplingKnobs, autoregressive, exact_law, generate, lifted, propose
from refspec.model import next_rows
from toy_models import get_pair

LEVEL = 1e-4
LEAST_EXPECTED = 50
SAMPLES = {1: 10_000, 2: 7000, 4: 3500}  # by K
SEEN = {1: 0.041, 2: 0.058, 4: 0.077}  # total variation rejected with probability 0.99, by K
KNOBS = {
    "temperature-0.3": {"temperature": 0.3},
    "temperature-0.7": {"temperature": 0.7},
    "plain": {},
    "temperature-1.5": {"temperature": 1.5},
    "top-k": {"top_k": 3},
    "top-p": {"top_p": 0.72},
    "min-p": {"min_p": 0.35},
    "combination": {"temperature": 1.3, "top_k": 3, "top_p": 0.88, "min_p": 0.2},
}
SETTINGS = [(name, lookahead) for name in KNOBS for lookahead in SAMPLES]


class RememberedModel(CountedModel):
    """A model whose scores are computed once a context: only time differs."""

    def __init__(self, model):
        super().__init__(model)
        self.score = cache(model.score)


class RememberedKnobs(SamplingKnobs):
    """Knobs whose rows are computed once for equal scores and histories: only time differs."""

    @cached_property
    def rows(self):
        return {}

    def row(self, scores, *, kind, history):
        key = kind, scores.tobytes(), self.reads(history)
        if key not in self.rows:
            self.rows[key] = super().row(scores, kind=kind, history=history)
        return self.rows[key]


def watched(tokens):
    return tokens[-3:]


@cache
def law_of(knobs, lookahead):
    """The exact law of the watched tokens, zero cells left out."""
    target = lifted(get_pair("context").target, SamplingKnobs(**KNOBS[knobs]))
    law = Counter()
    full = exact_law(
        lambda chance: autoregressive.generate(target=target, prompt=(), max_new_tokens=lookahead + 1, chance=chance)
    )
    for tokens, probability in full.items():
        law[watched(tokens)] += probability
    return law


def cells_of(law, samples):
    """Lists of outcomes: the first a pool of the least likely, expected at least 50 times; the others single."""
    ascending = sorted(law, key=lambda outcome: (law[outcome], outcome))
    pooled = 0
    while pooled < len(ascending) and law[ascending[pooled]] * samples < LEAST_EXPECTED:
        pooled += 1
    while pooled and sum(law[outcome] for outcome in ascending[:pooled]) * samples < LEAST_EXPECTED:
        pooled += 1
    return [ascending[:pooled]] * (pooled > 0) + [[outcome] for outcome in ascending[pooled:]]


def p_value(law, observed):
    """The p-value of the observed counts; 0 if an outcome was seen that cannot be."""
    if observed.keys() - law.keys():
        return 0.0
    samples = observed.total()
    cells = cells_of(law, samples)
    expected = np.array([float(sum(law[outcome] for outcome in cell) * samples) for cell in cells])
    assert expected.min() >= LEAST_EXPECTED
    counts = [sum(observed[outcome] for outcome in cell) for cell in cells]
    return float(chisquare(counts, expected).pvalue)


def sample(sampler, knobs, lookahead, seed_name):
    pair = get_pair("context").floats
    target, draft = RememberedModel(pair.target), RememberedModel(pair.draft)
    generator = np.random.default_rng(int.from_bytes(sha256(seed_name.encode()).digest(), "big"))
    setting = {
        "target": target,
        "draft": draft,
        "prompt": (),
        "lookahead": lookahead,
        "max_new_tokens": lookahead + 1,
        "chance": SampledChance(generator),
        "knobs": RememberedKnobs(**KNOBS[knobs]),
    }
    return Counter(watched(sampler(**setting)) for _ in range(SAMPLES[lookahead]))


@pytest.mark.parametrize(("knobs", "lookahead"), SETTINGS)
def test_the_last_tokens_follow_the_law_of_the_target(knobs, lookahead, request):
    observed = sample(generate, knobs, lookahead, request.node.name)
    assert p_value(law_of(knobs, lookahead), observed) >= LEVEL


@pytest.mark.parametrize(("knobs", "lookahead"), SETTINGS)
def test_the_stated_power_is_reached(knobs, lookahead):
    samples = SAMPLES[lookahead]
    freedom = len(cells_of(law_of(knobs, lookahead), samples)) - 1
    assert freedom >= 3
    threshold = chi2.isf(LEVEL, freedom)
    noncentrality = brentq(lambda value: ncx2.sf(threshold, freedom, value) - 0.99, 1, 1000)
    assert sqrt(noncentrality / (4 * samples)) <= SEEN[lookahead]


def replaced_from_the_target(*, target, draft, prompt, lookahead, max_new_tokens, chance, knobs):
    """A wrong sampler: a rejected token is replaced from the target row, not from the residual."""
    tokens = prompt
    while (remaining := max_new_tokens - len(tokens)) > 0:
        drafted, draft_rows = propose(
            draft=draft, prefix=tokens, lookahead=min(lookahead, remaining - 1), chance=chance, knobs=knobs
        )
        target_rows = next_rows(target, tokens, drafted, knobs=knobs)
        for target_row, draft_row, token in zip(target_rows, draft_rows, drafted, strict=False):
            if not chance.accept(target_row[token], draft_row[token]):
                tokens += (chance.draw(target_row),)
                break
            tokens += (token,)
        else:
            tokens += (chance.draw(target_rows[-1]),)
    return tokens


@pytest.mark.parametrize("lookahead", SAMPLES)
def test_a_residual_taken_from_the_target_row_is_rejected(lookahead, request):
    observed = sample(replaced_from_the_target, "plain", lookahead, request.node.name)
    assert p_value(law_of("plain", lookahead), observed) < LEVEL


def test_an_impossible_outcome_is_rejected_whatever_the_counts():
    law = law_of("top-p", 1)
    counts = Counter({outcome: round(float(probability) * 8000) for outcome, probability in law.items()})
    assert p_value(law, counts) > LEVEL
    assert p_value(law, counts + Counter({(0, 9): 1})) == 0.0

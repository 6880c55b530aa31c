"""Closed forms: what a loop emits on average, and how the number of its tokens is distributed.

All but ``survival`` count *emitted* tokens, the replaced or the bonus token included; the accepted ones are one fewer.
The three functions of an ``acceptance_rate`` hold when the acceptance probability is the same in every context (or
independent from token to token, with that mean): Leviathan et al. 2022 assume it. Where it depends on the context,
``survival`` and what follows from it are exact.
"""

from collections.abc import Hashable
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from refspec.distribution import as_count, overlap, total_variation
from refspec.history import History, Tokens, as_history
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import LanguageModel, common_vocabulary, next_rows

__all__ = [
    "count_law",
    "count_law_in_context",
    "expected_tokens",
    "expected_tokens_in_context",
    "overlap",
    "survival",
    "total_variation",
    "variance_of_tokens",
]


def count_law(acceptance_rate: Any, lookahead: int) -> tuple[Any, ...]:
    """Return P(a loop emits m tokens) for m = 1 to K+1: the capped geometric law.

        P(m) = a**(m-1) * (1 - a)  for m <= K,   P(K+1) = a**K

    Holds for a constant acceptance rate. Leviathan et al. 2022, section 3.1 (their alpha).

    >>> from fractions import Fraction
    >>> count_law(Fraction(3, 5), 2)
    (Fraction(2, 5), Fraction(6, 25), Fraction(9, 25))
    """
    _refuse_rate(acceptance_rate, lookahead)
    stopped = [acceptance_rate**accepted * (1 - acceptance_rate) for accepted in range(lookahead)]
    return (*stopped, acceptance_rate**lookahead)


def expected_tokens(acceptance_rate: Any, lookahead: int) -> Any:
    """Return the mean number of tokens a loop emits.

        (1 - a**(K+1)) / (1 - a),   and K + 1 at a = 1

    It is the sum of a**i for i = 0 to K, which is how it is computed. Holds for a constant acceptance rate.
    The accepted tokens are one fewer: a mean of 2101/625 emitted is 1476/625 accepted.
    Leviathan et al. 2022, Equation 1 (their alpha and gamma).

    >>> from fractions import Fraction
    >>> expected_tokens(Fraction(4, 5), 4)
    Fraction(2101, 625)
    """
    _refuse_rate(acceptance_rate, lookahead)
    return sum(acceptance_rate**i for i in range(lookahead + 1))


def variance_of_tokens(acceptance_rate: Any, lookahead: int) -> Any:
    """Return the variance of the number of tokens a loop emits, for a constant acceptance rate.

        (a - (2K + 1)(1 - a) a**(K+1) - a**(2K+2)) / (1 - a)**2,   and 0 at a = 1

    >>> from fractions import Fraction
    >>> variance_of_tokens(Fraction(3, 5), 2)
    Fraction(474, 625)
    """
    law = count_law(acceptance_rate, lookahead)
    mean = expected_tokens(acceptance_rate, lookahead)
    return sum((tokens - mean) ** 2 * mass for tokens, mass in enumerate(law, start=1))


def survival(
    *,
    target: LanguageModel,
    draft: LanguageModel,
    prefix: Tokens | History = (),
    lookahead: int,
    knobs: SamplingKnobs = PLAIN,
    draft_knobs: SamplingKnobs | None = None,
) -> tuple[Any, ...]:
    """Return P(the first k drafted tokens are all accepted) for k = 0 to K, exact for any models.

    The contexts along the way follow the law of *accepted* tokens, min(target, draft) / overlap: neither the
    target's nor the draft's. Prefixes that lead both models to the same states are merged.
    """
    history = as_history(prefix, vocabulary=common_vocabulary(target, draft))
    draft_knobs = knobs if draft_knobs is None else draft_knobs
    reached: dict[Hashable, tuple[History, Any]] = {None: (history, 1)}
    survived: list[Any] = [1]
    for _ in range(as_count(lookahead, name="lookahead")):
        following: dict[Hashable, tuple[History, Any]] = {}
        for history, weight in reached.values():
            (target_row,) = next_rows(target, history, knobs=knobs)
            (draft_row,) = next_rows(draft, history, knobs=draft_knobs)
            for token, shared in enumerate(np.minimum(target_row, draft_row)):
                after = history.then((token,))
                states = target.state_key(after.tokens), draft.state_key(after.tokens)
                key = states, knobs.reads(after), draft_knobs.reads(after)
                following[key] = (after, following.get(key, (after, 0))[1] + weight * shared)
        reached = following
        survived.append(sum(weight for _, weight in reached.values()))
    return tuple(survived)


def count_law_in_context(**step: Any) -> tuple[Any, ...]:
    """Return P(a loop emits m tokens) for m = 1 to K+1, exact for any models.

    Keywords as of ``survival``: target, draft, prefix, lookahead, knobs, draft_knobs.
    """
    survived = survival(**step)
    return (*(before - after for before, after in pairwise(survived)), survived[-1])


def expected_tokens_in_context(**step: Any) -> Any:
    """Return the mean number of tokens a loop emits, exact for any models.

    Keywords as of ``survival``: target, draft, prefix, lookahead, knobs, draft_knobs.

    E[tokens] = 1 + sum for k = 1 to K of P(the first k drafted tokens are all accepted)
    """
    return sum(survival(**step))


def _refuse_rate(acceptance_rate: Any, lookahead: int) -> None:
    if not isinstance(acceptance_rate, Real) or not 0 <= float(acceptance_rate) <= 1:
        raise ValueError(f"acceptance_rate: {acceptance_rate}; expected 0 to 1")
    as_count(lookahead, name="lookahead")

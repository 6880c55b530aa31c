"""Modified rejection sampling of ONE position: the theorem that carries speculative sampling.

If ``token`` was drawn from the draft row, the returned token is distributed as the target row:

    P(y) = min(target[y], draft[y])  +  P(reject) * residual[y] / sum(residual)  =  target[y]

because the residual is ``max(target - draft, 0)``, and its total is exactly the probability of a rejection.

Chen et al. 2023, Theorem 1 (their q is the target, their p the draft); Leviathan et al. 2022, Appendix A.1
(the letters are the other way round).
"""

from typing import NamedTuple

import numpy as np

from refspec.chance import Chance
from refspec.distribution import Row


class Verdict(NamedTuple):
    """The token of one position, and whether it is the drafted one."""

    token: int
    accepted: bool


def residual(target_row: Row, draft_row: Row) -> Row:  # [V], [V] -> [V]
    """Return the positive part of target minus draft: weights, not normalised.

    Chen et al. 2023 write it normalised, as (q - p)+; Leviathan et al. 2022 call it p'.

    >>> residual(np.array([0.75, 0.25]), np.array([0.25, 0.75])).tolist()
    [0.5, 0.0]
    """
    return np.asarray(np.maximum(target_row - draft_row, 0))


def recovery(target_row: Row, draft_row: Row) -> Row:  # [V], [V] -> [V]
    """Return the weights from which a rejected token is replaced.

    They are the residual. Its mass can be zero only where rounding made a rejection possible at all: then the
    two rows are equal within rounding, and the target row is the answer.
    """
    weights = residual(target_row, draft_row)
    return weights if weights.any() else target_row


def verify_token(*, target_row: Row, draft_row: Row, token: int, chance: Chance) -> Verdict:
    """Keep a drafted token with probability min(1, target/draft), else replace it from the residual.

    >>> from refspec.chance import ReplayedChance
    >>> rows = dict(target_row=np.array([0.75, 0.25]), draft_row=np.array([0.25, 0.75]))
    >>> verify_token(**rows, token=1, chance=ReplayedChance(accept_u=0.5, final_u=0.5))
    Verdict(token=0, accepted=False)
    """
    if chance.accept(target_row[token], draft_row[token]):
        return Verdict(token, accepted=True)
    return Verdict(chance.draw(recovery(target_row, draft_row)), accepted=False)

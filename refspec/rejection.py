"""Modified rejection sampling of ONE position: the theorem that carries speculative sampling.

If ``token`` was drawn from the draft row, the returned token is distributed as the target row:

    P(y) = min(target[y], draft[y])  +  P(reject) * residual[y] / sum(residual)  =  target[y]

because the residual is ``max(target - draft, 0)``, and its total is exactly the probability of a rejection.

Chen et al. 2023, Theorem 1 (their q is the target, their p the draft); Leviathan et al. 2022, Appendix A.1
(the letters are the other way round).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from refspec.chance import Chance, as_chance
from refspec.distribution import Row, as_step, as_two_rows


class Verdict(NamedTuple):
    """The token of one position, and whether it is the drafted one."""

    token: int
    accepted: bool


def residual(target_row: ArrayLike, draft_row: ArrayLike) -> Row:  # [V], [V] -> [V]
    """Return the positive part of target minus draft: weights, not normalised.

    Normalised, it is (q - p)+ in Chen et al. 2023 and p' in Leviathan et al. 2022.

    >>> residual([0.75, 0.25], [0.25, 0.75]).tolist()
    [0.5, 0.0]
    """
    return _positive_part(*as_two_rows(target_row, draft_row))


def _positive_part(target_row: Row, draft_row: Row) -> Row:
    return np.asarray(np.maximum(target_row - draft_row, 0))


def recovery(target_row: Row, draft_row: Row) -> Row:  # [V], [V] -> [V]
    """Return the weights from which a rejected token is replaced.

    They are the residual. Its mass can be zero only where rounding made a rejection possible at all: then the
    two rows are equal within rounding, and the target row is the answer.
    """
    weights = _positive_part(target_row, draft_row)
    return weights if weights.any() else target_row


def keep_or_replace(target_row: Row, draft_row: Row, token: int, chance: Chance) -> Verdict:
    """The rule of ``verify_token`` itself, on rows and a token that are known to be sound."""
    if chance.accept(target_row[token], draft_row[token]):
        return Verdict(token, accepted=True)
    return Verdict(chance.draw(recovery(target_row, draft_row)), accepted=False)


def verify_token(*, target_row: ArrayLike, draft_row: ArrayLike, token: int, chance: Chance) -> Verdict:
    """Keep a drafted token with probability min(1, target/draft), else replace it from the residual.

    Raises ``ValueError`` if a row is no distribution or the token has no mass in the draft row.

    >>> from refspec.chance import ReplayedChance
    >>> rows = dict(target_row=[0.75, 0.25], draft_row=[0.25, 0.75])
    >>> verify_token(**rows, token=1, chance=ReplayedChance(accept_u=0.5, final_u=0.5))
    Verdict(token=0, accepted=False)
    """
    (target, _), (draft,), (token,) = as_step(np.stack([target_row] * 2), np.asarray(draft_row)[None], [token])
    return keep_or_replace(target, draft, token, as_chance(chance))

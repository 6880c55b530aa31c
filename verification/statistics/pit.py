"""The ratio-ordered randomised probability integral transform: a law over any vocabulary becomes a uniform.

In a context the tokens are ordered by target/draft. A token y becomes

    U = (target mass of the tokens before y) + (a fresh uniform) * target(y)

which is uniform given the history if y follows the target. The order puts at one end what the draft overrates: a
wrong acceptance or a wrong residual tilts U. Blind to an exchange of tokens of equal ratio.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BINS = 8


def mass_before(target_rows: Floats, draft_rows: Floats) -> Floats:  # [N, V], [N, V] -> [N, V]
    """Return for each token the target mass of the tokens before it in the order of target/draft."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(target_rows / draft_rows, nan=-1.0, posinf=np.inf)
    order = np.argsort(ratio, axis=1, kind="stable")
    ordered = np.take_along_axis(target_rows, order, axis=1)
    before = np.empty_like(ordered)
    np.put_along_axis(before, order, np.cumsum(ordered, axis=1) - ordered, axis=1)
    return before


def bins_of(before: Floats, mass: Floats, fresh: Floats) -> NDArray[np.intp]:
    """Return the bin, 0 to 7, of U = before + fresh * mass."""
    return np.minimum((BINS * (before + fresh * mass)).astype(np.intp), BINS - 1)

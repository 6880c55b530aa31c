"""Six wrong rules on a chain of drafted tokens. Each says what is wrong and, where there is a public report, which."""

import numpy as np
from numpy.typing import NDArray

from verification.faults.rule import Floats, Ints, Rule, Step


class ResampleFromTarget(Rule):
    """A rejected token is drawn from the target row again: the residual is forgotten; ShopeeLLM/Spec-RL #14."""

    def recovery(self, step: Step, at: Ints) -> Floats:
        return step.target_rows[np.arange(len(at)), at]


class ResidualByAbsoluteValue(Rule):
    """The residual is |target - draft|: what the draft overrates comes back."""

    def recovery(self, step: Step, at: Ints) -> Floats:
        chain = np.arange(len(at))
        return np.asarray(abs(step.target_rows[chain, at] - step.draft_rows[chain, at]))


class BonusFromDraft(Rule):
    """After a fully accepted draft the extra token is drawn from the last draft row."""

    def bonus(self, step: Step) -> Floats:
        return step.draft_rows[:, -1]


class AlwaysAccept(Rule):
    """Every drafted token passes; vllm-project/vllm-ascend #13730: the uniform is hard-coded to 0."""

    def accepts(self, step: Step) -> NDArray[np.bool_]:
        return np.ones(step.draft_tokens.shape, dtype=bool)


class OneRowLate(Rule):
    """The residual is made of the rows of the next position; NVIDIA/TensorRT-LLM PR#15098, by its description."""

    def recovery(self, step: Step, at: Ints) -> Floats:
        chain, last = np.arange(len(at)), step.draft_rows.shape[1] - 1
        late = step.target_rows[chain, at + 1] - step.draft_rows[chain, np.minimum(at + 1, last)]
        return np.asarray(np.maximum(late, 0))


class AcceptUniformReused(Rule):
    """The uniform that refused a token also draws its replacement: low ones never do; vllm-ascend PR#16370."""

    def final_u(self, step: Step, kept: Ints, rejected: NDArray[np.bool_]) -> Floats:
        at = np.minimum(kept, step.accept_u.shape[1] - 1)
        return np.where(rejected, step.accept_u[np.arange(len(at)), at], step.final_u)

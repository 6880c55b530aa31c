"""``exact_law``: the third reading of a procedure, every branch of it with its exact weight.

A uniform is here a *cell*, an interval [low, high) of which nothing more is known yet, and each decision cuts
it. The procedure is simply run again along every branch, depth first; it cannot tell that it is enumerated.
With ``Fraction`` rows the result is a proof about the code that ran.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Any, NamedTuple, Self, TypeVar

from numpy.typing import ArrayLike

from refspec.chance import ACCEPT, Chance, State
from refspec.distribution import Row, as_drawable, cumulative, refuse_negative

Outcome = TypeVar("Outcome", bound=Hashable)
FLOAT_TOLERANCE = 1e-9  # how far the sum of a law over float64 rows may be from one


class TooManyLeavesError(ValueError):
    """The procedure has more branches than were allowed."""


class Branch(NamedTuple):
    """One way a decision can go: its outcome, its probability, and what is then known of the uniform."""

    outcome: Any
    probability: Any
    low: Any = 0
    high: Any = 1


class Choice:
    """A decision on the present path: its branches, the one being explored, and the weight of the way there."""

    def __init__(self, branches: Sequence[Branch], weight_before: Any) -> None:
        self.branches = branches
        self.weight_before = weight_before
        self.at = 0

    @property
    def branch(self) -> Branch:
        return self.branches[self.at]

    @property
    def weight(self) -> Any:
        return self.weight_before * self.branch.probability


class BranchingChance(Chance):
    """The enumerated reading. It walks the tree of decisions, one path a run of the procedure."""

    def __init__(self, max_leaves: int) -> None:
        self.max_leaves = max_leaves
        self.path: list[Choice] = []
        self.depth = 0
        self.run = 0
        self.inside_a_step = False

    def start(self) -> None:
        """Begin the next run of the procedure, at the root."""
        self.depth, self.run = 0, self.run + 1

    def weight(self) -> Any:
        """Return the probability of the path just run."""
        return self.path[-1].weight if self.path else 1

    def advance(self) -> bool:
        """Move on to the next path, depth first; return False when there is none."""
        while self.path and self.path[-1].at + 1 == len(self.path[-1].branches):
            self.path.pop()
        if self.path:
            self.path[-1].at += 1
        return bool(self.path)

    def decide(self, branches: Callable[[], Sequence[Branch]]) -> Branch:
        """Return this run's branch of the next decision. Branches are computed on the first visit only."""
        if self.inside_a_step:
            raise RuntimeError("a repeated step used a uniform that was not made by its own chance")
        if self.depth == len(self.path):
            self.path.append(Choice(branches(), self.weight()))
        self.depth += 1
        return self.path[self.depth - 1].branch

    def uniform(self, slot: str = ACCEPT) -> "Cell":
        return Cell(self)

    def repeat(
        self,
        step: Callable[[Self, State], Any],
        state: State,
        *,
        done: Callable[[State], bool],
        alike: Callable[[State], Hashable],
    ) -> State:
        def branches() -> list[Branch]:
            self.inside_a_step = True
            try:
                law = self._compose(step, state, done, alike)
            finally:
                self.inside_a_step = False
            return [Branch(final, probability) for final, probability in law.items()]

        final: State = self.decide(branches).outcome
        return final

    def _compose(self, step: Any, state: State, done: Any, alike: Any) -> dict[State, Any]:
        """Return the law of the last state: one law a class of alike states, equal states merged."""
        laws: dict[Hashable, dict[Any, Any]] = {}
        finished: dict[State, Any] = {}
        frontier: dict[State, Any] = {state: 1}
        while frontier:
            following: dict[State, Any] = {}
            for state, weight in frontier.items():
                if done(state):
                    finished[state] = finished.get(state, 0) + weight
                    continue
                if (key := alike(state)) not in laws:
                    laws[key] = exact_law(partial(_step_from, step, state), self.max_leaves)
                for increment, probability in laws[key].items():
                    after = state + increment
                    following[after] = following.get(after, 0) + weight * probability
            frontier = following
            self._refuse_beyond(len(frontier) + len(finished), 1 - sum(finished.values()))
        return finished

    def _refuse_beyond(self, leaves: int, unexplored: Any) -> None:
        if leaves > self.max_leaves:
            raise TooManyLeavesError(
                f"{leaves} leaves, and weight {float(unexplored):.3g} not yet explored; max_leaves is {self.max_leaves}"
            )


def _step_from(step: Callable[[Any, State], Any], state: State, chance: Chance) -> Any:
    return step(chance, state)


class Cell:
    """A uniform known to lie in [low, high). A decision that the cell already settles has one branch."""

    def __init__(self, owner: BranchingChance) -> None:
        self.owner, self.run = owner, owner.run
        self.low: Any = 0
        self.high: Any = 1

    def below(self, numerator: Any, denominator: Any = 1) -> bool:
        return bool(self._cut(lambda: ([True, False], [_threshold(numerator, denominator)])))

    def index(self, weights: ArrayLike) -> int:
        return int(self._cut(lambda: _edges(as_drawable(weights))))

    def _cut(self, cuts: Callable[[], tuple[Sequence[Any], Iterable[Any]]]) -> Any:
        """Cut the cell at edges ascending in [0, 1], each piece with its outcome; take this run's. None is empty."""
        if self.run != self.owner.run:
            raise RuntimeError("a uniform was used after the run that made it")

        def branches() -> list[Branch]:
            outcomes, edges = cuts()
            bounds = [self.low, *(min(max(edge, self.low), self.high) for edge in edges), self.high]
            width = self.high - self.low
            return [
                Branch(outcome, (high - low) / width if high - low != width else 1, low, high)
                for outcome, low, high in zip(outcomes, bounds[:-1], bounds[1:], strict=True)
                if low < high
            ]

        branch = self.owner.decide(branches)
        self.low, self.high = branch.low, branch.high
        return branch.outcome


def _threshold(numerator: Any, denominator: Any) -> Any:
    refuse_negative(numerator, denominator)
    if numerator >= denominator:
        return 1
    return _exact(numerator) / _exact(denominator)


def _edges(weights: Row) -> tuple[Sequence[int], list[Any]]:
    """Return the indices, and the inner edges of the cumulative weights as parts of the total."""
    edges = cumulative(weights)
    return range(len(edges)), [_exact(edge) / _exact(edges[-1]) for edge in edges[:-1]]


def _exact(number: Any) -> Any:
    """A rational stays a rational (``int / int`` would be a float)."""
    return Fraction(number) if isinstance(number, Rational) else number


def exact_law(procedure: Callable[[Chance], Outcome], max_leaves: int = 10**6) -> dict[Outcome, Any]:
    """Return ``{outcome: probability}`` of a procedure, by running it along every branch.

    Parameters
    ----------
    procedure : takes a ``Chance``, returns something hashable; it may decide by nothing but that chance
    max_leaves : how many branches to explore at most; ``repeat`` counts the states it holds

    Raises
    ------
    TooManyLeavesError  names the leaves and the weight not yet explored
    ArithmeticError     the weights do not sum to one
    RuntimeError        a uniform was used outside the run or the repeated step that made it

    >>> exact_law(lambda chance: chance.draw([Fraction(1), Fraction(2)]))
    {0: Fraction(1, 3), 1: Fraction(2, 3)}
    """
    chance = BranchingChance(max_leaves)
    law: dict[Outcome, Any] = {}
    leaves, explored = 0, False
    while not explored:
        chance.start()
        outcome = procedure(chance)
        if not isinstance(outcome, Hashable):
            raise TypeError(f"outcome {outcome!r} cannot be the key of a law; expected something hashable")
        law[outcome] = law.get(outcome, 0) + chance.weight()
        leaves += 1
        explored = not chance.advance()
        if not explored and leaves >= max_leaves:
            chance._refuse_beyond(leaves + 1, 1 - sum(law.values()))
    chance.start()  # a uniform that was carried out of the procedure is of no run
    _assert_sums_to_one(law)
    return law


def _assert_sums_to_one(law: dict[Any, Any]) -> None:
    total = sum(law.values())
    if not (total == 1 if isinstance(total, Rational) else abs(total - 1) <= FLOAT_TOLERANCE):
        raise ArithmeticError(f"the law sums to {total}; expected 1")

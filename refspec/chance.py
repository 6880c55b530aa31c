"""Every random decision goes through a ``Chance``, whose only primitive is a uniform on [0, 1).

The same procedure is then read in three ways: ``SampledChance`` samples it, ``ReplayedChance`` replays it on
injected uniforms, and ``refspec.law.exact_law`` enumerates its branches.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from refspec.distribution import as_drawable, cumulative, refuse_negative

State = TypeVar("State", bound=Any)
Slot = float | Sequence[float] | NDArray[Any]  # the uniforms of one slot, or the only one
ACCEPT, FINAL, DRAFT, TOKEN = "accept_u", "final_u", "draft_u", "token_u"


class Uniform(Protocol):
    """A uniform on [0, 1) that decides: a number, or (in ``exact_law``) an interval of them."""

    def below(self, numerator: Any, denominator: Any = 1) -> bool:
        """Whether the uniform is below ``numerator / denominator``."""
        ...

    def index(self, weights: ArrayLike) -> int:
        """The index that the uniform selects by the inverse of the cumulative weights."""
        ...


class Number:
    """A uniform that is a number.

    A comparison is strict and has no division: a token of target mass zero and some draft mass is refused even by
    a uniform of 0, and a zero-weight index is unreachable for every uniform in [0, 1).
    """

    def __init__(self, value: float | Fraction) -> None:
        self.value = value

    def _beside(self, other: Any) -> Any:
        """The value as a fraction beside fractions, so that the comparison is exact."""
        return Fraction(self.value) if isinstance(other, Rational) else self.value

    def below(self, numerator: Any, denominator: Any = 1) -> bool:
        refuse_negative(numerator, denominator)
        # The first clause decides where u * denominator would round up to a subnormal denominator.
        return bool(numerator >= denominator or self._beside(denominator) * denominator < numerator)

    def index(self, weights: ArrayLike) -> int:
        edges = cumulative(as_drawable(weights))  # [V]
        threshold = self._beside(edges[-1]) * edges[-1]
        # The second clause decides where u * total would round up to the total.
        return int(np.argmax((edges > threshold) | (edges == edges[-1])))


class Chance:
    """The source of every random decision. A reading says what a uniform is.

    ``slot`` names the uniform for a replay; it has no effect on the law.
    """

    def uniform(self, slot: str = ACCEPT) -> Uniform:
        """Return a fresh uniform on [0, 1)."""
        raise NotImplementedError

    def accept(self, numerator: Any, denominator: Any, *, slot: str = ACCEPT) -> bool:
        """Return True with probability ``min(1, numerator / denominator)``, both at least 0; 0/0 counts as one."""
        return self.uniform(slot).below(numerator, denominator)

    def draw(self, weights: ArrayLike, *, slot: str = FINAL) -> int:
        """Return index i with probability ``weights[i] / total``. Weights whose total is 0 are refused."""
        return self.uniform(slot).index(weights)

    def repeat(
        self,
        step: Callable[[Self, State], Any],
        state: State,
        *,
        done: Callable[[State], bool],
        alike: Callable[[State], Hashable],
    ) -> State:
        """Add ``step(chance, state)`` to ``state`` until ``done(state)``; return the last state.

        ``alike(state)`` names everything that the step reads: states that are alike have the same law of the
        next step. Sampling and replay do not need it; ``exact_law`` composes laws by it.
        """
        while not done(state):
            state = state + step(self, state)
            self.end_loop()
        return state

    def end_loop(self) -> None:
        """Take note that one step of ``repeat`` is over."""


class SampledChance(Chance):
    """The sampled reading: uniforms from a NumPy generator.

    >>> SampledChance(np.random.default_rng(7)).draw([1, 0, 0])
    0
    """

    def __init__(self, generator: np.random.Generator) -> None:
        if not isinstance(generator, np.random.Generator):
            raise TypeError(f"generator: {generator!r}; expected a numpy.random.Generator")
        self.generator = generator

    def uniform(self, slot: str = ACCEPT) -> Number:
        return Number(self.generator.random())


class ReplayedChance(Chance):
    """The replayed reading: injected uniforms by slot, loop by loop. What a loop leaves over is discarded.

    One loop of the standard rule has the slots ``draft_u`` [K], ``accept_u`` [K] and ``final_u``; the baseline
    has ``token_u``. Running out is an error that names the slot. ``used`` counts what the present loop took.

    >>> ReplayedChance(final_u=0.5).draw([1, 1, 2])
    2
    """

    def __init__(self, **slots: Slot) -> None:
        self._start([slots])

    @classmethod
    def over(cls, loops: Sequence[Mapping[str, Slot]]) -> Self:
        """Replay several loops, each with its own slots."""
        replayed = cls()
        replayed._start(loops)
        return replayed

    def _start(self, loops: Sequence[Mapping[str, Slot]]) -> None:
        self.loops = [{slot: _checked(slot, values) for slot, values in loop.items()} for loop in loops]
        self.loop = 0
        self.used: dict[str, int] = {}

    def uniform(self, slot: str = ACCEPT) -> Number:
        if self.loop >= len(self.loops):
            raise ValueError(f"loop {self.loop} asks for {slot}; uniforms were given for {len(self.loops)} loops")
        values = self.loops[self.loop].get(slot, ())
        at = self.used.get(slot, 0)
        if at >= len(values):
            given = ", ".join(f"{name}[{len(numbers)}]" for name, numbers in self.loops[self.loop].items())
            raise ValueError(f"loop {self.loop} asks for {slot}[{at}]; {len(values)} were given (of {given or 'none'})")
        self.used[slot] = at + 1
        return Number(values[at])

    def end_loop(self) -> None:
        self.loop, self.used = self.loop + 1, {}


def as_chance(chance: Chance) -> Chance:
    """Return the chance, or refuse what is none (a bare generator, most likely)."""
    if not isinstance(chance, Chance):
        raise TypeError(f"chance: {chance!r}; expected a Chance, such as SampledChance(numpy.random.default_rng(7))")
    return chance


def _checked(slot: str, values: Slot) -> tuple[Any, ...]:
    numbers = np.atleast_1d(np.asarray(values))
    if numbers.ndim > 1:
        raise ValueError(f"{slot}: shape {numbers.shape}; expected one uniform, or a sequence of them")
    for i, value in enumerate(numbers):
        if not isinstance(value, int | float | Fraction | np.integer | np.floating) or not 0 <= value < 1:
            raise ValueError(f"{slot}[{i}]: {value} is not a uniform; expected 0 <= u < 1")
    return tuple(value if isinstance(value, Rational) else float(value) for value in numbers)

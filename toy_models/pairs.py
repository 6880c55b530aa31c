"""Named pairs of a target and a draft. Each docstring says what the pair is for: the fault it exposes.

A pair is a function here; ``get_pair(name)`` calls it. Its name in reports is the function's, with hyphens.
Unless a docstring says otherwise the rows depend on the token before, and the first row also stands at the
beginning of a text: a fault in rows or positions does not show where all rows are equal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from toy_models.ngram import NGramModel, has_words, read_text
from toy_models.random_logits import NearbyModel, RandomLogitModel
from toy_models.tabular import TabularModel


@dataclass(frozen=True)
class Pair:
    """A target and a draft over one vocabulary.

    name        permanent, lower case with hyphens
    purpose     what the pair shows
    target      a language model: ``score``, ``vocabulary``, ``kind``, ``state_key``
    draft       the same
    acceptance  for a pair of tables, the acceptance probability if it is the same in every context; else None
    """

    name: str
    purpose: str
    target: Any
    draft: Any
    acceptance: Fraction | None = None

    @property
    def vocabulary(self) -> int:
        return int(self.target.vocabulary)

    @property
    def is_table(self) -> bool:
        return isinstance(self.target, TabularModel)

    @property
    def floats(self) -> "Pair":
        """The pair with float64 rows."""
        return replace(self, target=self.target.floats, draft=self.draft.floats) if self.is_table else self


_MAKERS: dict[str, Callable[[], Pair]] = {}


def _pair(make: Callable[[], tuple[Any, ...]]) -> Callable[[], Pair]:
    name = make.__name__.replace("_", "-")

    def named() -> Pair:
        target, draft = make()
        return Pair(name, " ".join((make.__doc__ or "").split()), target, draft, _constant_overlap(target, draft))

    _MAKERS[name] = named
    return named


def _constant_overlap(target: Any, draft: Any) -> Fraction | None:
    """Return the mass that target and draft rows share, if it is the same in every context of two tables."""
    if not isinstance(target, TabularModel):
        return None
    rows = ((target.score(context, ())[0], draft.score(context, ())[0]) for context in target.weights)
    overlaps = {sum(map(min, target_row, draft_row)) for target_row, draft_row in rows}
    return overlaps.pop() if len(overlaps) == 1 else None


def pair_names() -> tuple[str, ...]:
    """Return the names of all pairs that need no text."""
    return tuple(_MAKERS)


def get_pair(name: str) -> Pair:
    """Return the pair of that name, its tables exact. Raises ``ValueError`` that lists the names."""
    if name not in _MAKERS:
        raise ValueError(f"no pair is called {name!r}; the pairs are {', '.join(_MAKERS)}")
    return _MAKERS[name]()


def _table(*rows: Sequence[int]) -> TabularModel:
    """Rows by the token before; the first also stands at the beginning of a text."""
    return TabularModel({(): rows[0], **{(token,): row for token, row in enumerate(rows)}})


def _rotated(row: Sequence[int]) -> TabularModel:
    """One row, turned by one place for each token it may follow: the likeliest token differs from row to row."""
    return _table(*([row[(y - turn) % len(row)] for y in range(len(row))] for turn in range(len(row))))


@_pair
def context() -> tuple[Any, ...]:
    """Rows that differ in everything: several tokens in each residual, one token with equal mass, one that the draft
    overrates ninefold, another likeliest token in each row. Shows a row one place early or late, a bonus token from
    a wrong row, a uniform used twice.
    """
    target = _table((40, 30, 20, 10), (10, 45, 15, 30), (25, 5, 50, 20), (30, 25, 10, 35))
    draft = _table((10, 20, 35, 35), (30, 25, 30, 15), (15, 45, 20, 20), (15, 10, 30, 45))
    return target, draft


@_pair
def identical() -> tuple[Any, ...]:
    """Both models are one: every draft must be accepted. Shows a test that rejects at a ratio of one."""
    target = _table((40, 30, 20, 10), (10, 45, 15, 30), (25, 5, 50, 20), (30, 25, 10, 35))
    return target, target


@_pair
def disjoint() -> tuple[Any, ...]:
    """No token has mass in both rows: every draft must be rejected. Shows a draft token that leaks."""
    return _rotated((3, 1, 0, 0)), _rotated((0, 0, 1, 2))


@_pair
def near_ties() -> tuple[Any, ...]:
    """Rows that are almost flat, a third of a percent apart. Shows a comparison made too coarse, and greedy
    decoding that follows the draft.
    """
    return _rotated((101, 100, 99)), _rotated((99, 100, 101))


@_pair
def exact_zeros() -> tuple[Any, ...]:
    """Tokens that one model or the other gives no mass. Shows a clamp that is not zero, and a division."""
    return _rotated((5, 3, 2, 0)), _rotated((2, 0, 3, 5))


@_pair
def rare_token() -> tuple[Any, ...]:
    """A token of probability one in a thousand that the draft proposes a quarter of the time. Shows a test that
    lets a rare token pass too easily.
    """
    return _rotated((500, 300, 199, 1)), _rotated((250, 250, 250, 250))


@_pair
def one_hot_target() -> tuple[Any, ...]:
    """The target knows the next token. Shows a rule that trusts the draft where the target leaves no choice."""
    return _rotated((0, 1, 0, 0)), _rotated((4, 3, 2, 1))


@_pair
def one_hot_draft() -> tuple[Any, ...]:
    """The draft has no doubt, as a lookup in the prompt has none. Shows a residual that keeps the drafted token."""
    return _rotated((4, 3, 2, 1)), _rotated((0, 1, 0, 0))


@_pair
def wide_residual() -> tuple[Any, ...]:
    """The residual holds three of four tokens. Shows a residual of the wrong shape: a softmax, its likeliest token,
    the target without the drafted token.
    """
    return _rotated((10, 30, 35, 25)), _rotated((70, 10, 12, 8))


@_pair
def single_residual() -> tuple[Any, ...]:
    """Each residual is a single token: the blind spot of many hand-made examples, kept as a contrast."""
    target = _table((50, 30, 20), (10, 60, 30), (20, 30, 50))
    draft = _table((20, 30, 50), (30, 40, 30), (25, 50, 25))
    return target, draft


@_pair
def two_tokens() -> tuple[Any, ...]:
    """The smallest pair that shows a bonus token from the draft: two tokens, and a lookahead of 1 is enough."""
    return _table((3, 1), (1, 3)), _table((2, 2), (3, 1))


@_pair
def second_order() -> tuple[Any, ...]:
    """Rows that depend on the last two tokens. Shows a context that lost a token, or has one too many."""
    contexts = [context for length in range(3) for context in product(range(2), repeat=length)]
    target = {context: (2 + sum(context), 1 + 3 * context[0]) if context else (1, 1) for context in contexts}
    draft = {context: (1 + 2 * context[-1], 2 + 3 * context[0]) if context else (2, 1) for context in contexts}
    return TabularModel(target), TabularModel(draft)


@_pair
def eight() -> tuple[Any, ...]:
    """Eight tokens. Shows what needs a longer tail than four tokens have."""
    return _rotated((30, 22, 15, 11, 9, 6, 4, 3)), _rotated((5, 9, 21, 18, 13, 16, 8, 10))


@_pair
def g1() -> tuple[Any, ...]:
    """Two tokens with the rows swapped, the same in every context: overlap 2/3, a golden case by hand."""
    return _table((1, 2), (1, 2)), _table((2, 1), (2, 1))


@_pair
def g2() -> tuple[Any, ...]:
    """Four tokens, the draft in reverse, the same in every context: overlap 3/5, residual (3/4, 1/4, 0, 0)."""
    return _table(*[(4, 3, 2, 1)] * 4), _table(*[(1, 2, 3, 4)] * 4)


@_pair
def g3() -> tuple[Any, ...]:
    """Acceptance that depends on the context: the formula for a constant rate is wrong here (77/25 for K = 4).
    The beginning of a text has rows of its own.
    """
    target = TabularModel({(): (1, 1), (0,): (4, 1), (1,): (1, 1)})
    draft = TabularModel({(): (1, 3), (0,): (4, 1), (1,): (1, 9)})
    return target, draft


def _constant_acceptance(rate: Fraction) -> tuple[Any, ...]:
    """Rows that share a part of mass ``rate``; the rest of them has no token in common, in every context."""
    shared, target_rest, draft_rest = (4, 3, 2, 1), (7, 3, 0, 0), (0, 0, 4, 6)
    rows = [
        [rate * both + (1 - rate) * own for both, own in zip(shared, rest, strict=True)]
        for rest in (target_rest, draft_rest)
    ]
    target, draft = (_rotated([int(20 * weight) for weight in row]) for row in rows)
    return target, draft


for _rate in ("0", "0.1", "0.5", "0.8", "0.95", "1"):

    def _make(rate: Fraction = Fraction(_rate)) -> tuple[Any, ...]:
        return _constant_acceptance(rate)

    _make.__name__ = f"acceptance_{_rate}"
    _make.__doc__ = f"""An acceptance probability of {_rate} in every context, though the rows differ: the number of
    tokens follows the capped geometric law. Shows a count that is off."""
    _pair(_make)


@_pair
def random_logits() -> tuple[Any, ...]:
    """Random logits over five tokens, the draft at total variation 0.3. Shows knobs applied to one model only, or to
    probabilities in place of logits.
    """
    target = RandomLogitModel(5, seed=20230202)
    return target, NearbyModel(target, distance=0.3, seed=20221130)


@_pair
def random_logits_wide() -> tuple[Any, ...]:
    """Random logits over 200 tokens, the draft at total variation 0.4. Shows what only a large vocabulary
    shows: a cut tail, a sum in low precision, tokens in the wrong order.
    """
    target = RandomLogitModel(200, seed=20230202, scale=2.0)
    return target, NearbyModel(target, distance=0.4, seed=20221130)


@_pair
def random_logits_large() -> tuple[Any, ...]:
    """Random logits over 2048 tokens, the same in every context, the draft at total variation 0.4. Shows what only a
    row longer than a kernel's block shows.
    """
    target = RandomLogitModel(2048, seed=20230202, scale=2.0, order=0)
    return target, NearbyModel(target, distance=0.4, seed=20221130)


def text_pairs(path: str | Path | None = None) -> tuple[Pair, ...]:
    """Return the pairs fitted on a text (None: the help texts inside the running CPython).

    A text without two different words (one in a script that does not part them, say) has no pair of words.
    Raises ``ValueError`` or ``OSError`` as ``toy_models.ngram.read_text``.
    """
    return tuple(_text_pair(path, *rest) for rest in _TEXT_PAIRS if rest[1] != "words" or has_words(path))


_TEXT_PAIRS: tuple[tuple[str, str, int | None, int, int], ...] = (
    # name, unit, classes, order of the target, order of the draft
    ("ngram-folded", "characters", 4, 3, 2),
    ("ngram-characters", "characters", 256, 2, 1),
    ("ngram-words", "words", 200, 2, 1),
)


def _text_pair(path: str | Path | None, name: str, unit: str, classes: int | None, order: int, draft: int) -> Pair:
    text = read_text(path, unit=unit, classes=classes)
    purpose = (
        f"{unit} of a real text ({text.name}, {len(text.tokens)} of them, {text.vocabulary} kinds): "
        f"the target is an {order}-gram model, the draft a {draft}-gram model."
    )
    return Pair(name, purpose, NGramModel(text, order=order), NGramModel(text, order=draft))

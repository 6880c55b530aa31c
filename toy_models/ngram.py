"""n-gram models fitted on a real text: by default the one that every CPython carries, ``pydoc_data.topics``."""

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
OTHER = "<rarer>"  # no character, and no word of UNITS
UNITS = {"characters": r"(?s:.)", "words": r"\w+|[^\w\s]"}


@dataclass(frozen=True)
class Text:
    """A text as tokens.

    name     the file, or "pydoc_data.topics"
    sha256   of the UTF-8 text
    symbols  what each token id stands for, the commonest first; the last may be a class of all rarer ones
    tokens   [N] token ids
    """

    name: str
    sha256: str
    symbols: tuple[str, ...]
    tokens: tuple[int, ...]

    @property
    def vocabulary(self) -> int:
        return len(self.symbols)


def read_text(path: str | Path | None = None, *, unit: str = "characters", classes: int | None = None) -> Text:
    """Read a text and cut it into tokens.

    Parameters
    ----------
    path : a UTF-8 text file; None for the help texts inside the running CPython
    unit : "characters" or "words"
    classes : fold the rarer symbols into one, so that this many are left; None keeps them all

    Raises
    ------
    ValueError  an unknown unit, fewer than 2 classes, a text of fewer than 2 different symbols, or not UTF-8
    OSError     the file cannot be read
    """
    if unit not in UNITS:
        raise ValueError(f"unit: {unit!r}; expected one of {sorted(UNITS)}")
    if classes is not None and classes < 2:
        raise ValueError(f"classes: {classes}; expected 2 or more, or None")
    name, content = _content(path)
    symbols = re.findall(UNITS[unit], content)
    counts = Counter(symbols)
    if len(counts) < 2:
        raise ValueError(f"{name}: {len(counts)} different {unit}; expected 2 or more to fit a model")
    ordered = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
    ids = {symbol: i for i, symbol in enumerate(ordered)}
    if classes is not None and classes < len(ordered):
        ids = {symbol: min(i, classes - 1) for symbol, i in ids.items()}
        ordered = [*ordered[: classes - 1], OTHER]
    digest = sha256(content.encode()).hexdigest()
    return Text(name, digest, tuple(ordered), tuple(ids[symbol] for symbol in symbols))


def has_words(path: str | Path | None = None) -> bool:
    """Whether a text has two different words, so that a model of words can be fitted."""
    words = (found.group() for found in re.finditer(UNITS["words"], _content(path)[1]))
    first = next(words, None)
    return any(word != first for word in words)


def _content(path: str | Path | None) -> tuple[str, str]:
    return ("pydoc_data.topics", _python_help()) if path is None else (str(path), _read(Path(path)))


def _python_help() -> str:
    from pydoc_data.topics import topics

    return "\n".join(topics[topic] for topic in sorted(topics))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")  # as it is: read_text would change its line ends, and so its digest
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8; expected a text file") from error


class NGramModel:
    """The next token depends on the last ``order - 1`` tokens, by their counts in a text.

        row(context)[y] = (count(context, y) + smoothing * row(shorter context)[y]) / (count(context) + smoothing)

    down to the uniform row, so that every token has mass in every context (MacKay & Peto 1995, a hierarchical
    Dirichlet model).

    Parameters
    ----------
    text : what to count
    order : 1 for single tokens, 2 for pairs, ...
    smoothing : the weight of the shorter context, in counts; above 0
    """

    kind = "weights"

    def __init__(self, text: Text, *, order: int, smoothing: float = 1.0) -> None:
        if not isinstance(order, int) or order < 1:
            raise ValueError(f"order: {order}; expected 1 or more")
        if not 0 < smoothing < float("inf"):
            raise ValueError(f"smoothing: {smoothing}; expected a number above 0")
        if len(text.tokens) < order + 1:
            raise ValueError(f"{text.name}: {len(text.tokens)} tokens; expected at least {order + 1} for order {order}")
        self.text = text
        self.order = order
        self.smoothing = smoothing
        self.vocabulary = text.vocabulary
        self._counts = _count(text.tokens, order)
        self._rows: dict[tuple[int, ...], Floats] = {}

    def state_key(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Return the last ``order - 1`` tokens."""
        return tuple(tokens[max(len(tokens) - self.order + 1, 0) :])

    def score(self, prefix: tuple[int, ...], continuation: tuple[int, ...]) -> Floats:
        """Return the rows [len(continuation) + 1, V] after each prefix of the continuation."""
        return np.stack([self.row(self.state_key(prefix + continuation[:i])) for i in range(len(continuation) + 1)])

    def row(self, context: tuple[int, ...]) -> Floats:  # -> [V]
        """Return the row of one context of at most ``order - 1`` tokens."""
        for token in context:
            if not 0 <= token < self.vocabulary:
                raise ValueError(f"token {token} is out of range; expected 0 to {self.vocabulary - 1}")
        if context not in self._rows:
            shorter = self.row(context[1:]) if context else np.full(self.vocabulary, 1 / self.vocabulary)
            weights = self.smoothing * shorter
            for token, count in self._counts.get(context, {}).items():
                weights[token] += count
            self._rows[context] = weights / weights.sum()
        return self._rows[context]


def _count(tokens: tuple[int, ...], order: int) -> dict[tuple[int, ...], Counter[int]]:
    """Return how often each token follows each context of 0 to ``order - 1`` tokens."""
    counts: dict[tuple[int, ...], Counter[int]] = {}
    for length in range(order):
        windows = zip(*(tokens[i:] for i in range(length + 1)), strict=False)
        for window, count in Counter(windows).items():
            counts.setdefault(window[:-1], Counter())[window[-1]] = count
    return counts

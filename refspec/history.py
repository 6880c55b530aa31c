"""What came before a position: the prompt, the output so far, and the tokens that may end it.

The history of a drafted position holds the drafts before it, of the same loop. It is a value: a draft that is
rejected leaves no trace, because nothing was ever written.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from refspec.distribution import as_tokens

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class History:
    """What the knobs of one position may look at.

    prompt      the tokens that were given
    output      the tokens emitted since, and the drafted tokens before this position
    end_tokens  the tokens that end an output; ``min_tokens`` bans them
    """

    prompt: Tokens = ()
    output: Tokens = ()
    end_tokens: Tokens = ()

    def __post_init__(self) -> None:
        for name in ("prompt", "output", "end_tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def tokens(self) -> Tokens:
        """Everything a model reads."""
        return self.prompt + self.output

    def then(self, tokens: Iterable[int]) -> "History":
        """Return the history after more output."""
        return replace(self, output=(*self.output, *tokens))


NO_HISTORY = History()


def as_history(prefix: "Sequence[int] | History", *, vocabulary: int) -> History:
    """Return a prefix as a history, its tokens checked; a bare sequence is all prompt."""
    if not isinstance(prefix, History):
        return History(prompt=as_tokens(prefix, vocabulary=vocabulary, name="prefix"))
    checked = {
        name: as_tokens(getattr(prefix, name), vocabulary=vocabulary, name=name)
        for name in ("prompt", "output", "end_tokens")
    }
    return History(**checked)

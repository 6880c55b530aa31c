"""When an output is over: an end token, a stop sequence, or the cap; whichever comes first."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from refspec.distribution import as_count, as_tokens
from refspec.history import Tokens


@dataclass(frozen=True)
class Stopping:
    """What ends an output.

    sequences       an output ends with the first of them that it contains; one of a single token is an end token
    min_tokens      the token that ends an output is none of its first ``min_tokens``
    max_new_tokens  the cap
    """

    sequences: tuple[Tokens, ...]
    min_tokens: int
    max_new_tokens: int

    @property
    def end_tokens(self) -> Tokens:
        return tuple(sequence[0] for sequence in self.sequences if len(sequence) == 1)

    def done(self, output: Tokens) -> bool:
        return self.stops(output) or len(output) == self.max_new_tokens

    def stops(self, output: Tokens) -> bool:
        """Whether the last token of the output ends it. Only the output counts, not the prompt before it."""
        completed = any(output[-len(sequence) :] == sequence for sequence in self.sequences)
        return completed and len(output) > self.min_tokens

    def cut(self, output: Tokens, following: Tokens) -> Tokens:
        """Return what of the following tokens the output takes: up to and with the first that ends it."""
        for taken in range(1, len(following) + 1):
            if self.stops(output + following[:taken]):
                return following[:taken]
        return following

    def reads(self, output: Tokens) -> Hashable:
        """Return what later stops depend on: the longest end of the output that begins a stop sequence, and length."""
        longest = max((len(sequence) for sequence in self.sequences), default=1) - 1
        ends = (output[len(output) - length :] for length in range(min(longest, len(output)), 0, -1))
        begun = next((end for end in ends if any(s[: len(end)] == end for s in self.sequences)), ())
        return begun, min(len(output), self.min_tokens)


def as_stopping(
    *,
    end_tokens: Iterable[int],
    stop_sequences: Iterable[Sequence[int]],
    min_tokens: int,
    max_new_tokens: int,
    vocabulary: int,
) -> Stopping:
    """Return what ends an output, or refuse it: a token out of range, an empty sequence, a negative cap."""
    ends = as_tokens(end_tokens, vocabulary=vocabulary, name="end_tokens")
    if not isinstance(stop_sequences, Iterable):
        raise ValueError(f"stop_sequences: {stop_sequences!r}; expected sequences of token ids")
    sequences = [
        as_tokens(sequence, vocabulary=vocabulary, name=f"stop_sequences[{i}]")
        for i, sequence in enumerate(stop_sequences)
    ]
    if () in sequences:
        raise ValueError(f"stop_sequences[{sequences.index(())}]: empty; expected one token id or more")
    singles = ((token,) for token in ends)
    least, cap = as_count(min_tokens, name="min_tokens"), as_count(max_new_tokens, name="max_new_tokens")
    return Stopping(tuple(dict.fromkeys([*singles, *sequences])), least, cap)

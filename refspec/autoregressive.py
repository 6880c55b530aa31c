"""The baseline: one call of the target for each token. Chen et al. 2023, Algorithm 1."""

from collections.abc import Collection, Hashable, Sequence

from refspec.chance import TOKEN, Chance, as_chance
from refspec.distribution import as_count, as_tokens
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import LanguageModel, Tokens, next_rows


def generate(
    *,
    target: LanguageModel,
    prompt: Sequence[int],
    max_new_tokens: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
    end_tokens: Collection[int] = (),
) -> Tokens:
    """Continue a prompt token by token; return the new tokens. Its law is what speculative sampling must keep.

    It stops as ``refspec.speculative.generate`` does. A replay takes ``token_u`` once a loop.
    """
    prompt = as_tokens(prompt, vocabulary=target.vocabulary, name="prompt")
    ends = as_tokens(end_tokens, vocabulary=target.vocabulary, name="end_tokens")
    length = len(prompt) + as_count(max_new_tokens, name="max_new_tokens")

    def step(chance: Chance, tokens: Tokens) -> Tokens:
        (row,) = next_rows(target, tokens, knobs=knobs)
        return (chance.draw(row, slot=TOKEN),)

    def done(tokens: Tokens) -> bool:
        ended = len(tokens) > len(prompt) and tokens[-1] in ends
        return ended or len(tokens) == length

    def alike(tokens: Tokens) -> Hashable:
        return target.state_key(tokens)

    return as_chance(chance).repeat(step, prompt, done=done, alike=alike)[len(prompt) :]

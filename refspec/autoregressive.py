"""The baseline: one call of the target for each token. Chen et al. 2023, Algorithm 1."""

from collections.abc import Collection, Hashable, Sequence

from refspec.chance import TOKEN, Chance, as_chance
from refspec.distribution import as_tokens
from refspec.history import History, Tokens
from refspec.knobs import PLAIN, SamplingKnobs, as_knobs
from refspec.model import LanguageModel, next_rows
from refspec.stopping import as_stopping


def generate(
    *,
    target: LanguageModel,
    prompt: Sequence[int],
    max_new_tokens: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
    end_tokens: Collection[int] = (),
    stop_sequences: Collection[Sequence[int]] = (),
) -> Tokens:
    """Continue a prompt token by token; return the new tokens. Its law is what speculative sampling must keep.

    It stops as ``refspec.speculative.generate`` does. A replay takes ``token_u`` once a loop.
    """
    stopping = as_stopping(
        end_tokens=end_tokens,
        stop_sequences=stop_sequences,
        min_tokens=as_knobs(knobs).min_tokens,
        max_new_tokens=max_new_tokens,
        vocabulary=target.vocabulary,
    )
    prompt = as_tokens(prompt, vocabulary=target.vocabulary, name="prompt")
    start = History(prompt, end_tokens=stopping.end_tokens)

    def step(chance: Chance, output: Tokens) -> Tokens:
        (row,) = next_rows(target, start.then(output), knobs=knobs)
        return (chance.draw(row, slot=TOKEN),)

    def alike(output: Tokens) -> Hashable:
        return target.state_key(prompt + output), knobs.reads(start.then(output))

    output: Tokens = as_chance(chance).repeat(step, (), done=stopping.done, alike=alike)
    return output

"""Speculative sampling: propose, verify, one loop, and whole generations.

Chen et al. 2023, Algorithm 2 (their q is the target, their p the draft, their K the lookahead); Leviathan et al.
2022, Algorithm 1 (p is the target, q the draft, gamma the lookahead).
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from refspec.block import Block
from refspec.chance import DRAFT, Chance, as_chance
from refspec.distribution import Row, Rows, as_count, as_step, as_tokens, refuse_mixture
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import LanguageModel, Tokens, common_vocabulary, next_rows
from refspec.rejection import keep_or_replace


def propose(
    *, draft: LanguageModel, prefix: Sequence[int], lookahead: int, chance: Chance, knobs: SamplingKnobs = PLAIN
) -> tuple[Tokens, Rows]:  # -> [K], [K, V]
    """Draw K tokens from the draft model, one after the other; return them with the rows they were drawn from."""
    prefix, chance = as_tokens(prefix, vocabulary=draft.vocabulary, name="prefix"), as_chance(chance)
    tokens: Tokens = ()
    rows: list[Row] = []
    for _ in range(as_count(lookahead, name="lookahead")):
        (row,) = next_rows(draft, prefix + tokens, knobs=knobs)
        tokens += (chance.draw(row, slot=DRAFT),)
        rows.append(row)
    return tokens, np.stack(rows) if rows else np.empty((0, draft.vocabulary))


def verify_draft(
    *, target_rows: ArrayLike, draft_rows: ArrayLike, draft_tokens: Sequence[int], chance: Chance
) -> Block:
    """Keep the longest acceptable prefix of a draft, then emit one token more.

    Law: if each ``draft_tokens[i]`` was drawn from ``draft_rows[i]`` given the tokens before it, the block, continued
    by the target to K+1 tokens, is a sample of the target, whatever the draft rows are.

    Parameters
    ----------
    target_rows : [K+1, V]  row i is the target's distribution after ``draft_tokens[:i]``
    draft_rows : [K, V]     row i is the distribution ``draft_tokens[i]`` was drawn from, after every knob
    draft_tokens : [K]      token ids
    chance : takes ``accept_u`` once for each test, ``final_u`` once

    Returns
    -------
    Block  1 to K+1 tokens

    Raises
    ------
    ValueError  a row is no distribution, a drafted token has no mass in its own row, shapes disagree

    Decisions: acceptance is strict, on a uniform in [0, 1); a residual without mass gives way to the target row.

    >>> from refspec.chance import ReplayedChance
    >>> verify_draft(target_rows=[[0.75, 0.25], [0.5, 0.5]], draft_rows=[[0.25, 0.75]], draft_tokens=[0],
    ...              chance=ReplayedChance(accept_u=0.9, final_u=0.6)).tokens
    (0, 1)
    """
    return apply_rule(*as_step(target_rows, draft_rows, draft_tokens), as_chance(chance))


def apply_rule(target_rows: Rows, draft_rows: Rows, draft_tokens: Tokens, chance: Chance) -> Block:
    """The rule of ``verify_draft`` itself, on rows and tokens that are known to be sound."""
    kept: Tokens = ()
    for target_row, draft_row, drafted in zip(target_rows, draft_rows, draft_tokens, strict=False):
        token, accepted = keep_or_replace(target_row, draft_row, drafted, chance)
        if not accepted:
            return Block((*kept, token), drafted=len(draft_tokens), verified=len(kept) + 1, accepted=len(kept))
        kept += (token,)
    bonus = chance.draw(target_rows[-1])
    return Block((*kept, bonus), drafted=len(kept), verified=len(kept), accepted=len(kept))


def speculative_step(
    *,
    target: LanguageModel,
    draft: LanguageModel,
    prefix: Sequence[int],
    lookahead: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
    draft_knobs: SamplingKnobs | None = None,
) -> Block:
    """Run one loop: K serial draft tokens, ONE target call that scores K+1 positions, one verification.

    ``draft_knobs`` defaults to ``knobs``. With ``lookahead`` 0 it is one step of the baseline.
    """
    prefix = as_tokens(prefix, vocabulary=common_vocabulary(target, draft), name="prefix")
    draft_tokens, draft_rows = propose(
        draft=draft,
        prefix=prefix,
        lookahead=lookahead,
        chance=chance,
        knobs=knobs if draft_knobs is None else draft_knobs,
    )
    target_rows = next_rows(target, prefix, draft_tokens, knobs=knobs)  # [K+1, V]
    refuse_mixture(target_rows, draft_rows)
    return apply_rule(target_rows, draft_rows, draft_tokens, chance)


@dataclass(frozen=True)
class Generation:
    """What stays fixed while a prompt is continued."""

    target: LanguageModel
    draft: LanguageModel
    lookahead: int
    knobs: SamplingKnobs
    draft_knobs: SamplingKnobs | None
    end_tokens: Collection[int]
    start: int  # length of the prompt
    length: int  # most tokens, the prompt included

    def drafted_after(self, tokens: Tokens) -> int:
        """Return how many tokens the next loop drafts: near the cap fewer, as it emits one more than it drafts."""
        return min(self.lookahead, self.length - len(tokens) - 1)

    def advance(self, tokens: Tokens, chance: Chance) -> Block:
        """Return the next block, cut at an end token: what is returned, counted and kept as history agree."""
        block = speculative_step(
            target=self.target,
            draft=self.draft,
            prefix=tokens,
            lookahead=self.drafted_after(tokens),
            chance=chance,
            knobs=self.knobs,
            draft_knobs=self.draft_knobs,
        )
        return block.cut(self.end_tokens)

    def done(self, tokens: Tokens) -> bool:
        ended = len(tokens) > self.start and tokens[-1] in self.end_tokens
        return ended or len(tokens) == self.length

    def alike(self, tokens: Tokens) -> Hashable:
        """Everything ``advance`` reads."""
        return self.target.state_key(tokens), self.draft.state_key(tokens), self.drafted_after(tokens)


def _generation(prompt: Sequence[int], max_new_tokens: int, **fixed: Any) -> tuple[Generation, Tokens]:
    vocabulary = common_vocabulary(fixed["target"], fixed["draft"])
    prompt = as_tokens(prompt, vocabulary=vocabulary, name="prompt")
    fixed["end_tokens"] = as_tokens(fixed["end_tokens"], vocabulary=vocabulary, name="end_tokens")
    as_count(fixed["lookahead"], name="lookahead")
    length = len(prompt) + as_count(max_new_tokens, name="max_new_tokens")
    return Generation(start=len(prompt), length=length, **fixed), prompt


def generate(
    *,
    target: LanguageModel,
    draft: LanguageModel,
    prompt: Sequence[int],
    lookahead: int,
    max_new_tokens: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
    draft_knobs: SamplingKnobs | None = None,
    end_tokens: Collection[int] = (),
) -> Tokens:
    """Continue a prompt by speculative sampling; return the new tokens, distributed as by the target alone.

    It stops after ``max_new_tokens``, or at the first end token, which is returned: also inside an accepted
    run. Cutting a run leaves the law exact. The prompt may be empty; an end token in it does not count.

    Raises
    ------
    ValueError  vocabularies differ, a token is out of range, a count is negative, a model returns no row
    """
    run, prompt = _generation(
        prompt,
        max_new_tokens,
        target=target,
        draft=draft,
        lookahead=lookahead,
        knobs=knobs,
        draft_knobs=draft_knobs,
        end_tokens=end_tokens,
    )
    tokens = as_chance(chance).repeat(
        lambda chance, tokens: run.advance(tokens, chance).tokens, prompt, done=run.done, alike=run.alike
    )
    return tokens[len(prompt) :]


def generate_blocks(
    *,
    target: LanguageModel,
    draft: LanguageModel,
    prompt: Sequence[int],
    lookahead: int,
    max_new_tokens: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
    draft_knobs: SamplingKnobs | None = None,
    end_tokens: Collection[int] = (),
) -> tuple[Block, ...]:
    """Continue a prompt as ``generate`` does; return the block of each loop, from which every counter follows."""
    run, prompt = _generation(
        prompt,
        max_new_tokens,
        target=target,
        draft=draft,
        lookahead=lookahead,
        knobs=knobs,
        draft_knobs=draft_knobs,
        end_tokens=end_tokens,
    )

    def history(blocks: tuple[Block, ...]) -> Tokens:
        return prompt + tuple(token for block in blocks for token in block.tokens)

    return as_chance(chance).repeat(
        lambda chance, blocks: (run.advance(history(blocks), chance),),
        (),
        done=lambda blocks: run.done(history(blocks)),
        alike=lambda blocks: run.alike(history(blocks)),
    )

"""Speculative sampling: propose, verify, one loop, and whole generations.

Chen et al. 2023, Algorithm 2 (their q is the target, their p the draft, their K the lookahead); Leviathan et al.
2022, Algorithm 1 (p is the target, q the draft, gamma the lookahead).
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from refspec.block import Block
from refspec.chance import DRAFT, Chance, as_chance
from refspec.distribution import Row, Rows, as_count, as_step, as_tokens, refuse_mixture
from refspec.history import History, Tokens, as_history
from refspec.knobs import PLAIN, SamplingKnobs, as_knobs
from refspec.model import LanguageModel, common_vocabulary, next_rows
from refspec.rejection import keep_or_replace
from refspec.stopping import Stopping, as_stopping


def propose(
    *,
    draft: LanguageModel,
    prefix: Sequence[int] | History,
    lookahead: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
) -> tuple[Tokens, Rows]:  # -> [K], [K, V]
    """Draw K tokens from the draft model, one after the other; return them with the rows they were drawn from.

    A bare ``prefix`` is all prompt; a ``History`` tells prompt and output apart, as penalties must.
    """
    history, chance = as_history(prefix, vocabulary=draft.vocabulary), as_chance(chance)
    tokens: Tokens = ()
    rows: list[Row] = []
    for _ in range(as_count(lookahead, name="lookahead")):
        (row,) = next_rows(draft, history.then(tokens), knobs=knobs)
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
    prefix: Sequence[int] | History,
    lookahead: int,
    chance: Chance,
    knobs: SamplingKnobs = PLAIN,
    draft_knobs: SamplingKnobs | None = None,
) -> Block:
    """Run one loop: K serial draft tokens, ONE target call that scores K+1 positions, one verification.

    ``draft_knobs`` defaults to ``knobs``. With ``lookahead`` 0 it is one step of the baseline. A bare ``prefix`` is all
    prompt; a ``History`` tells prompt and output apart, as penalties must.
    """
    history = as_history(prefix, vocabulary=common_vocabulary(target, draft))
    draft_tokens, draft_rows = propose(
        draft=draft,
        prefix=history,
        lookahead=lookahead,
        chance=chance,
        knobs=knobs if draft_knobs is None else draft_knobs,
    )
    target_rows = next_rows(target, history, draft_tokens, knobs=knobs)  # [K+1, V]
    refuse_mixture(target_rows, draft_rows)
    return apply_rule(target_rows, draft_rows, draft_tokens, chance)


@dataclass(frozen=True)
class Generation:
    """What stays fixed while a prompt is continued."""

    target: LanguageModel
    draft: LanguageModel
    lookahead: int
    knobs: SamplingKnobs
    draft_knobs: SamplingKnobs
    start: History  # the prompt, and no output yet
    stopping: Stopping

    def drafted_after(self, output: Tokens) -> int:
        """Return how many tokens the next loop drafts: near the cap fewer, as it emits one more than it drafts."""
        return min(self.lookahead, self.stopping.max_new_tokens - len(output) - 1)

    def advance(self, output: Tokens, chance: Chance) -> Block:
        """Return the next block, cut where the output ends: what is returned, counted and kept as history agree."""
        block = speculative_step(
            target=self.target,
            draft=self.draft,
            prefix=self.start.then(output),
            lookahead=self.drafted_after(output),
            chance=chance,
            knobs=self.knobs,
            draft_knobs=self.draft_knobs,
        )
        return replace(block, tokens=self.stopping.cut(output, block.tokens))

    def alike(self, output: Tokens) -> Hashable:
        """Everything ``advance`` reads."""
        history = self.start.then(output)
        models = self.target.state_key(history.tokens), self.draft.state_key(history.tokens)
        knobs = self.knobs.reads(history), self.draft_knobs.reads(history)
        return models, knobs, self.stopping.reads(output), self.drafted_after(output)


def as_generation(*, prompt: Sequence[int], max_new_tokens: int, **asked: Any) -> Generation:
    """Return what ``generate`` was asked for, or refuse it."""
    vocabulary = common_vocabulary(asked["target"], asked["draft"])
    prompt = as_tokens(prompt, vocabulary=vocabulary, name="prompt")
    as_count(asked["lookahead"], name="lookahead")
    stopping = as_stopping(
        end_tokens=asked.pop("end_tokens"),
        stop_sequences=asked.pop("stop_sequences"),
        min_tokens=as_knobs(asked["knobs"]).min_tokens,
        max_new_tokens=max_new_tokens,
        vocabulary=vocabulary,
    )
    draft_knobs = asked.pop("draft_knobs")
    draft_knobs = asked["knobs"] if draft_knobs is None else as_knobs(draft_knobs, name="draft_knobs")
    start = History(prompt, end_tokens=stopping.end_tokens)
    return Generation(**asked, draft_knobs=draft_knobs, start=start, stopping=stopping)


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
    stop_sequences: Collection[Sequence[int]] = (),
) -> Tokens:
    """Continue a prompt by speculative sampling; return the new tokens, distributed as by the target alone.

    It stops at the first end token or with the first stop sequence, which are returned, or else after
    ``max_new_tokens``: also inside an accepted run, and for a sequence that began in an earlier loop. Cutting a run
    leaves the law exact. The prompt may be empty; an end token or a part of a stop sequence in it does not count.

    Raises
    ------
    ValueError  vocabularies differ, a token is out of range, a count is negative, a stop sequence is empty, a model
                returns no row
    """
    run = as_generation(
        target=target,
        draft=draft,
        prompt=prompt,
        lookahead=lookahead,
        max_new_tokens=max_new_tokens,
        knobs=knobs,
        draft_knobs=draft_knobs,
        end_tokens=end_tokens,
        stop_sequences=stop_sequences,
    )
    output: Tokens = as_chance(chance).repeat(
        lambda chance, output: run.advance(output, chance).tokens, (), done=run.stopping.done, alike=run.alike
    )
    return output


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
    stop_sequences: Collection[Sequence[int]] = (),
) -> tuple[Block, ...]:
    """Continue a prompt as ``generate`` does; return the block of each loop, from which every counter follows."""
    run = as_generation(
        target=target,
        draft=draft,
        prompt=prompt,
        lookahead=lookahead,
        max_new_tokens=max_new_tokens,
        knobs=knobs,
        draft_knobs=draft_knobs,
        end_tokens=end_tokens,
        stop_sequences=stop_sequences,
    )

    def output(blocks: tuple[Block, ...]) -> Tokens:
        return tuple(token for block in blocks for token in block.tokens)

    return as_chance(chance).repeat(
        lambda chance, blocks: (run.advance(output(blocks), chance),),
        (),
        done=lambda blocks: run.stopping.done(output(blocks)),
        alike=lambda blocks: run.alike(output(blocks)),
    )

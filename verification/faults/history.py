"""Wrong histories: what the knobs of a position see is not what stands before it."""

from dataclasses import replace

from refspec.history import History
from refspec.knobs import SamplingKnobs
from verification.faults.generation import Asked, Engine, Place


class FrozenAtLoopStart(Engine):
    """The drafts of the loop are seen at the bonus position alone; sgl-project/sglang #28180, PR#28200."""

    def history(self, asked: Asked, place: Place) -> History:
        return super().history(asked, place if place.is_bonus else replace(place, drafts=()))


class FrozenEverywhere(Engine):
    """No position sees the drafts of its loop."""

    def history(self, asked: Asked, place: Place) -> History:
        return super().history(asked, replace(place, drafts=()))


class FrozenForTheTarget(Engine):
    """The draft model sees the drafts before a position, the target does not."""

    def history(self, asked: Asked, place: Place) -> History:
        return super().history(asked, place if place.model == "draft" else replace(place, drafts=()))


class FrozenAtBonus(Engine):
    """The bonus position does not see the drafts of its loop."""

    def history(self, asked: Asked, place: Place) -> History:
        return super().history(asked, replace(place, drafts=()) if place.is_bonus else place)


class OneTokenLate(Engine):
    """The token just before a position is not yet counted."""

    def history(self, asked: Asked, place: Place) -> History:
        history = super().history(asked, place)
        return replace(history, output=history.output[:-1])


class RefusedRemembered(Engine):
    """A draft that was thrown away is still penalised; ml-explore/mlx-lm #1175."""

    def history(self, asked: Asked, place: Place) -> History:
        return History(asked.prompt, place.output + place.refused + place.drafts, asked.end_tokens)


class PlaceholdersCounted(Engine):
    """Slots of the loop that are not filled yet count as token 0; after vllm-project/vllm PR#30122."""

    def history(self, asked: Asked, place: Place) -> History:
        slots = place.drafts + (0,) * (place.lookahead - len(place.drafts))
        return History(asked.prompt, place.output + slots, asked.end_tokens)


class LoopsForgotten(Engine):
    """The output counts anew in each loop: penalties and the minimum of tokens see this loop alone."""

    def history(self, asked: Asked, place: Place) -> History:
        return History(asked.prompt, place.drafts, asked.end_tokens)


class PromptForgotten(Engine):
    """The repetition penalty passes over the prompt."""

    def history(self, asked: Asked, place: Place) -> History:
        return replace(super().history(asked, place), prompt=())


class PromptCounted(Engine):
    """Presence, frequency and the minimum of tokens count the prompt as output."""

    def history(self, asked: Asked, place: Place) -> History:
        history = super().history(asked, place)
        return replace(history, prompt=(), output=history.tokens)


class CountedOnce(Engine):
    """A token counts once, however often it is there: the frequency penalty is one of presence."""

    def history(self, asked: Asked, place: Place) -> History:
        history = super().history(asked, place)
        return replace(history, output=tuple(dict.fromkeys(history.output)))


class BonusAlone(Engine):
    """Bias and bans reach the bonus row alone; sgl-project/sglang #10617, vllm-project/vllm #42744."""

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        return asked.knobs if place.is_bonus else replace(asked.knobs, logit_bias=(), banned_tokens=(), min_p=None)


class DraftUnpenalised(Engine):
    """No fault: the draft's knobs see no history, the target's see theirs. Lossless, with another acceptance."""

    claims = frozenset({"lossless"})

    def history(self, asked: Asked, place: Place) -> History:
        if place.model == "draft":
            return History(end_tokens=asked.end_tokens)
        return super().history(asked, place)

"""Wrong knobs: one is left out, of half effect, or turned in another order; each alone would be right."""

from dataclasses import replace
from typing import Any

from refspec.history import History
from refspec.knobs import SamplingKnobs
from verification.faults.generation import Asked, Engine, Place, Weights


class GreedyAsTheModelSays(Engine):
    """At temperature 0 bias and bans are passed over."""

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        passed_over: dict[str, Any] = {"logit_bias": (), "banned_tokens": ()} if asked.knobs.temperature == 0 else {}
        return replace(asked.knobs, **passed_over)


class NegativePenaltiesIgnored(Engine):
    """A penalty below 0, which favours what was seen, counts as none."""

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        presence, frequency = (max(asked.knobs.presence_penalty, 0), max(asked.knobs.frequency_penalty, 0))
        return replace(asked.knobs, presence_penalty=presence, frequency_penalty=frequency)


class PresenceOrFrequency(Engine):
    """With a presence penalty there is no frequency penalty."""

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        return replace(asked.knobs, frequency_penalty=0) if asked.knobs.presence_penalty else asked.knobs


class FirstBanAlone(Engine):
    """Of several banned tokens the first is banned."""

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        return replace(asked.knobs, banned_tokens=tuple(asked.knobs.banned_tokens)[:1])


class FirstEndHeldBack(Engine):
    """The minimum of tokens bans the first of several end tokens."""

    def history(self, asked: Asked, place: Place) -> History:
        return replace(super().history(asked, place), end_tokens=asked.end_tokens[:1])


class BiasAfterTemperature(Engine):
    """The temperature divides the logits before the bias is added."""

    def knobs(self, asked: Asked, place: Place) -> SamplingKnobs:
        heat = float(asked.knobs.temperature)
        bias = {token: float(amount) * heat for token, amount in dict(asked.knobs.logit_bias).items()}
        return replace(asked.knobs, logit_bias=bias) if heat else asked.knobs


class TruncationOfTheModel(Engine):
    """Top-k, top-p and min-p keep what they would keep without penalties and bans."""

    def row(self, asked: Asked, place: Place) -> Weights:
        if place not in asked.rows:
            off: dict[str, Any] = {"top_k": None, "top_p": None, "min_p": None}
            cutting = SamplingKnobs(**{name: getattr(asked.knobs, name) for name in off})
            whole, cut = (
                super(TruncationOfTheModel, self).row(replace(asked, knobs=knobs, rows={}), place)
                for knobs in (replace(asked.knobs, **off), cutting)
            )
            kept = [mass if there else 0.0 for mass, there in zip(whole, cut, strict=True)]
            asked.rows[place] = kept if any(kept) else whole
        return asked.rows[place]

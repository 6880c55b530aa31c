"""Speculative sampling as a specification that runs: read it, sample it, replay it, prove it.

Start with ``rejection`` (one position), then ``speculative`` (a draft, a loop, a generation), ``block``, ``history``,
``knobs`` (made of ``penalties``, ``temperature`` and ``truncation``), ``stopping``, ``model`` and ``theory``; ``table``
and ``batched`` last. Every random decision goes through ``chance``; ``law.exact_law`` turns any procedure into its
exact law. ``SPEC_VERSION`` counts changes of what is specified.
"""

from refspec import autoregressive, batched, theory
from refspec.block import Block, Counters, count
from refspec.chance import Chance, ReplayedChance, SampledChance
from refspec.distribution import overlap, total_variation
from refspec.history import History
from refspec.knobs import SamplingKnobs
from refspec.law import exact_law
from refspec.model import CountedModel, LanguageModel, lifted
from refspec.rejection import residual, verify_token
from refspec.speculative import generate, generate_blocks, propose, speculative_step, verify_draft

__version__ = "0.1.0"
SPEC_VERSION = 1

__all__ = [
    "SPEC_VERSION",
    "Block",
    "Chance",
    "CountedModel",
    "Counters",
    "History",
    "LanguageModel",
    "ReplayedChance",
    "SampledChance",
    "SamplingKnobs",
    "autoregressive",
    "batched",
    "count",
    "exact_law",
    "generate",
    "generate_blocks",
    "lifted",
    "overlap",
    "propose",
    "residual",
    "speculative_step",
    "theory",
    "total_variation",
    "verify_draft",
    "verify_token",
]

"""The matrix: which property is checked on which pair, under which knobs, with which lookahead. The one place.

A test holds that every named pair, every knob setting and every lookahead from 1 to 8 is met, and that no knob used
for a verdict cuts a row where an honest implementation in float32 might cut it elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from refspec.knobs import PLAIN, SamplingKnobs
from toy_models import Pair, get_pair, pair_names, text_pairs
from verification.adapters.protocol import DRAFT_AND_VERIFY, GENERATE, VERIFY
from verification.scenario import Scenario

PROVE = "prove"  # the operation of a proof: the reference's own code is enumerated

KNOBS: dict[str, SamplingKnobs] = {
    "plain": PLAIN,
    "temperature 0": SamplingKnobs(temperature=0),
    "temperature 0.3": SamplingKnobs(temperature=0.3),
    "temperature 0.7": SamplingKnobs(temperature=0.7),
    "temperature 1.5": SamplingKnobs(temperature=1.5),
    "top-k 3": SamplingKnobs(top_k=3),
    "top-p 0.78": SamplingKnobs(top_p="0.78"),
    "min-p 0.32": SamplingKnobs(min_p="0.32"),
    "temperature 0.9, top-k 3, top-p 0.9": SamplingKnobs(temperature=0.9, top_k=3, top_p="0.9"),
    "temperature 1.5, top-k 3, min-p 0.3": SamplingKnobs(temperature=1.5, top_k=3, min_p="0.3"),
    "logit bias": SamplingKnobs(logit_bias={0: 1.5, 2: -1}),
    "banned tokens 1 and 3": SamplingKnobs(banned_tokens=(1, 3)),
    "repetition 1.5": SamplingKnobs(repetition_penalty=1.5),
    "presence 1.5": SamplingKnobs(presence_penalty=1.5),
    "frequency 1.2": SamplingKnobs(frequency_penalty=1.2),
    "minimum 2": SamplingKnobs(min_tokens=2),
    # What is right alone may be wrong together: left out, of the wrong sign, or in the wrong order.
    "presence 0.7, frequency 0.8": SamplingKnobs(presence_penalty=0.7, frequency_penalty=0.8),
    "repetition 0.7, presence -1, frequency -0.6": SamplingKnobs(
        repetition_penalty=0.7, presence_penalty=-1, frequency_penalty=-0.6
    ),
    "logit bias, repetition 1.3, frequency 0.8, temperature 0.7": SamplingKnobs(
        temperature=0.7, logit_bias={0: 1.5, 2: -1}, repetition_penalty=1.3, frequency_penalty=0.8
    ),
    "banned token 3, presence 1, top-k 2": SamplingKnobs(banned_tokens=(3,), presence_penalty=1, top_k=2),
    "presence 1.5, top-p 0.72": SamplingKnobs(presence_penalty=1.5, top_p="0.72"),
    "repetition 1.5, min-p 0.32": SamplingKnobs(repetition_penalty=1.5, min_p="0.32"),
    "minimum 2, top-p 0.76": SamplingKnobs(min_tokens=2, top_p="0.76"),
    "temperature 0, presence 1.5": SamplingKnobs(temperature=0, presence_penalty=1.5),
    "temperature 0, logit bias, banned token 3": SamplingKnobs(
        temperature=0, logit_bias={0: -1, 2: 2}, banned_tokens=(3,)
    ),
}
# What ends an output, on the pair `context`: one token is an end token, several are a stop sequence.
PROMPT = (2, 3)  # its last token ends an output, or begins a sequence that does
STOPS: dict[str, tuple[tuple[int, ...], ...]] = {
    "several end tokens": ((1,), (3,)),
    "across loops": ((0, 2), (3, 3), (1, 2, 0)),
    "begun in the prompt": ((3, 0), (0, 1)),
    "an end token and a sequence": ((1,), (0, 3)),
}
REPEATS = (0, 1, 1, 2)  # a prompt in which a token is there twice: what looks back must see it, and count it right
MINIMUM_STOPS: tuple[tuple[int, ...], ...] = ((1,), (3,), (0, 2))  # where a minimum of tokens holds them back
OVERLAPPING = ((0, 0, 1), (1, 0, 1, 0))  # to follow them a matcher must fall back to a shorter beginning

BLOCK = ("next-token-identity", "block-length", "support", "block-law", "token-count", "acceptance")
MERGED = ("next-token-identity", "block-length", "support", "token-count", "acceptance")
KNOBBED = ("knobs-before-rule", "block-length", "support", "block-law", "token-count", "acceptance")
GREEDY = ("greedy", "block-length", "support", "block-law")
WIDE = ("rows-pit", "rows-classes", "block-length", "support", "token-count")
OUTPUT = ("complete-output", "support")

# By vocabulary: the lookahead of a pair, the longest whose prefix tree has at most 256 leaves, the output length.
LOOKAHEAD = {2: 4, 3: 3, 4: 2, 5: 2, 8: 1}
LONGEST_LOOKAHEAD = {2: 7, 3: 4, 4: 3, 5: 2, 8: 1}
OUTPUT_LENGTH = {2: 5, 3: 4, 4: 3, 5: 3, 8: 3}
LONGEST_OUTPUT = {2: 8, 3: 5, 4: 4}
KNOBBED_PAIRS = ("context", "random-logits")
SMOKE_PAIRS = ("context", "exact-zeros", "wide-residual", "g3")
WIDE_PAIRS = ("random-logits-wide", "random-logits-large", "ngram-characters", "ngram-words")
LARGE_CALLS = 20_000
PROMPT_LENGTH = 3  # of the text itself, so that an n-gram model starts with a full context


@dataclass(frozen=True)
class Cell:
    """One run of an implementation, and the properties it is judged by; the first statistical one sets the samples.

    name    of the knobs
    smoke   whether it belongs to the smallest budget
    most    calls at most, where one costs much
    """

    scenario: Scenario
    operation: str
    properties: tuple[str, ...]
    name: str = "plain"
    smoke: bool = False
    most: int | None = None

    @property
    def label(self) -> str:
        """The cell beside others of its pair and lookahead, in reports."""
        scenario = self.scenario
        prompt = f"prompt {scenario.prompt}" if scenario.prompt else ""
        stop = f"stop at {' or '.join(map(str, scenario.stop))}" if scenario.stop else ""
        return "; ".join(filter(None, [self.name, prompt, stop]))


@cache
def cells(text: str | Path | None = None) -> tuple[Cell, ...]:
    """Return the whole matrix. ``text`` is the file that the n-gram pairs are fitted on; None for the default."""
    parts = (_proofs(text), _blocks(), _lookaheads(), _knobs(), _texts(text), _outputs(), _examinations())
    return tuple(cell for part in parts for cell in part)


@cache
def _floats(name: str) -> Pair:
    return get_pair(name).floats


@cache
def _text_pairs(text: str | Path | None) -> dict[str, Pair]:
    return {pair.name: pair for pair in text_pairs(text)}


def _small_pairs() -> list[str]:
    return [name for name in pair_names() if name not in WIDE_PAIRS]


def _prompt(pair: Pair) -> tuple[int, ...]:
    return tuple(pair.target.text.tokens[:PROMPT_LENGTH])


def _proofs(text: str | Path | None) -> Iterator[Cell]:
    """Every small pair jointly over loops; every knob on two pairs; the states of every table and text."""
    for name in _small_pairs():
        pair = _floats(name)
        lookahead, length = (2, 3) if pair.vocabulary <= 4 else (1, 2)
        scenario = Scenario(pair, lookahead, max_new_tokens=length)
        proofs = ("exact-equality", "state-certificate", "twin-equality")
        yield Cell(scenario, PROVE, proofs, smoke=name in SMOKE_PAIRS)
    for knobs, setting in KNOBS.items():
        if setting != PLAIN:
            for name in KNOBBED_PAIRS:
                proofs = ("exact-equality", "state-certificate", "twin-equality")
                stop = MINIMUM_STOPS if setting.min_tokens else ()
                lookahead, length = (2, 3) if setting.looks_back and name == "context" else (1, 2)
                scenario = Scenario(_floats(name), lookahead, setting, max_new_tokens=length, stop=stop)
                yield Cell(scenario, PROVE, proofs, knobs, smoke=name == "context")
    for stop in STOPS.values():
        ends = Scenario(_floats("context"), 2, prompt=PROMPT, max_new_tokens=4, stop=stop)
        yield Cell(ends, PROVE, ("exact-equality",), smoke=True)
    for pair in _text_pairs(text).values():
        yield Cell(Scenario(pair, 2, prompt=_prompt(pair)), PROVE, ("state-certificate",), smoke=pair.vocabulary == 4)


def _blocks() -> Iterator[Cell]:
    """Every small pair, its full prefix tree, drafted by the implementation and by the suite."""
    for name in _small_pairs():
        pair = _floats(name)
        lookaheads = LONGEST_LOOKAHEAD if name in SMOKE_PAIRS else LOOKAHEAD
        scenario = Scenario(pair, lookaheads[pair.vocabulary])
        properties = (*BLOCK, "independence") if name == "context" else BLOCK
        for operation in (DRAFT_AND_VERIFY, VERIFY):
            yield Cell(scenario, operation, properties, smoke=name in SMOKE_PAIRS)


def _lookaheads() -> Iterator[Cell]:
    """K from 1 to 8 on the pair whose rows differ most; full trees as far as they go, then states."""
    for lookahead in range(1, 9):
        if lookahead != LONGEST_LOOKAHEAD[4]:
            scenario = Scenario(_floats("context"), lookahead)
            properties = BLOCK if scenario.has_full_tree else MERGED
            yield Cell(scenario, DRAFT_AND_VERIFY, properties, smoke=lookahead in (1, 8))
            yield Cell(scenario, VERIFY, properties)


def _knobs() -> Iterator[Cell]:
    """Every knob, turned by the implementation in both models; without an output there is no minimum of it."""
    for name in KNOBBED_PAIRS:
        pair = _floats(name)
        for knobs, setting in KNOBS.items():
            if setting != PLAIN and not setting.min_tokens:
                prompt = REPEATS if setting.looks_back else ()
                scenario = Scenario(pair, LOOKAHEAD[pair.vocabulary], setting, prompt)
                properties = GREEDY if setting.temperature == 0 else KNOBBED
                yield Cell(scenario, DRAFT_AND_VERIFY, properties, knobs, smoke=name == "random-logits")
    greedy = KNOBS["temperature 0"]
    for name in ("near-ties", "g3", "context"):  # g3 begins with an exact tie
        yield Cell(Scenario(_floats(name), 3, greedy), VERIFY, GREEDY, "temperature 0", smoke=True)
    yield Cell(Scenario(_floats("g3"), 3, greedy), DRAFT_AND_VERIFY, GREEDY, "temperature 0", smoke=True)


def _texts(text: str | Path | None) -> Iterator[Cell]:
    """Models of a real text: folded to a full tree, and with whole vocabularies by the transform."""
    pairs = _text_pairs(text)
    folded = pairs["ngram-folded"]
    looking_back = "logit bias, repetition 1.3, frequency 0.8, temperature 0.7"
    for knobs in ("plain", "temperature 0.7", looking_back):
        scenario = Scenario(folded, 3, KNOBS[knobs], prompt=_prompt(folded))
        properties = BLOCK if knobs == "plain" else KNOBBED
        yield Cell(scenario, DRAFT_AND_VERIFY, properties, knobs, smoke=knobs == "plain")
    scenario = Scenario(folded, 2, KNOBS[looking_back], prompt=_prompt(folded), max_new_tokens=4, stop=((1, 2),))
    yield Cell(scenario, GENERATE, OUTPUT, looking_back)
    yield Cell(Scenario(folded, 3, prompt=_prompt(folded)), VERIFY, BLOCK)
    for name in WIDE_PAIRS:
        if name.startswith("ngram") and name not in pairs:
            continue  # a text without words
        pair = pairs.get(name) or _floats(name)
        prompt = _prompt(pair) if name in pairs else ()
        if name == "random-logits-large":
            yield Cell(Scenario(pair, 1), VERIFY, WIDE, most=LARGE_CALLS)
            yield Cell(Scenario(pair, 1), DRAFT_AND_VERIFY, WIDE, most=LARGE_CALLS)
        else:
            plain = Scenario(pair, 4, prompt=prompt)
            yield Cell(plain, DRAFT_AND_VERIFY, WIDE, smoke=name == "ngram-characters")
            if name != "ngram-words":
                yield Cell(plain, VERIFY, WIDE, smoke=name == "random-logits-wide")
    characters = pairs["ngram-characters"]
    warm = Scenario(characters, 4, KNOBS["temperature 0.7"], prompt=_prompt(characters))
    yield Cell(warm, DRAFT_AND_VERIFY, WIDE, "temperature 0.7")


def _outputs() -> Iterator[Cell]:
    """Whole outputs: several loops, the cap inside a loop, end tokens inside an accepted run."""
    for name in _small_pairs():
        pair = _floats(name)
        lengths = LONGEST_OUTPUT if name in SMOKE_PAIRS else OUTPUT_LENGTH
        length = lengths[pair.vocabulary]
        ends = ((1,),) if name in KNOBBED_PAIRS else ()
        properties = (*OUTPUT, "independence") if name == "context" else OUTPUT
        scenario = Scenario(pair, length - 2, max_new_tokens=length, stop=ends)
        yield Cell(scenario, GENERATE, properties, smoke=name in SMOKE_PAIRS)
    for knobs, setting in KNOBS.items():
        if setting != PLAIN and not setting.looks_back:
            ends = ((3,),) if setting.temperature == 1.5 else ()
            scenario = Scenario(_floats("context"), 1, setting, prompt=(2,), max_new_tokens=3, stop=ends)
            properties = ("greedy", *OUTPUT) if setting.temperature == 0 else OUTPUT
            in_smoke = setting.top_k == 3 or knobs == "temperature 0.7"
            yield Cell(scenario, GENERATE, properties, knobs, smoke=in_smoke)
    for name, length in (("context", 4), ("random-logits", 3)):
        for knobs, setting in KNOBS.items():
            if setting.looks_back:
                properties = ("greedy", *OUTPUT) if setting.temperature == 0 else OUTPUT
                for stop in (MINIMUM_STOPS, MINIMUM_STOPS[:2]) if setting.min_tokens else ((),):
                    scenario = Scenario(_floats(name), length - 2, setting, REPEATS, length, stop)
                    smoke = name == "context" or setting.min_tokens > 0
                    yield Cell(scenario, GENERATE, properties, knobs, smoke=smoke)
    for stop in STOPS.values():
        scenario = Scenario(_floats("context"), 2, prompt=PROMPT, max_new_tokens=4, stop=stop)
        yield Cell(scenario, GENERATE, OUTPUT, smoke=True)
    runs = Scenario(_floats("second-order"), 2, prompt=(1, 0), max_new_tokens=8, stop=OVERLAPPING)
    yield Cell(runs, GENERATE, OUTPUT, smoke=True)


def _examinations() -> Iterator[Cell]:
    """What needs no sample: seeds, calls of the target."""
    step = Scenario(_floats("context"), 3)
    yield Cell(step, VERIFY, ("seeded",), smoke=True)
    yield Cell(step, DRAFT_AND_VERIFY, ("seeded", "target-calls"), smoke=True)
    yield Cell(Scenario(_floats("context"), 3, max_new_tokens=4), GENERATE, ("seeded",), smoke=True)
    for name in ("identical", "acceptance-0"):  # all drafts are accepted, or none: the number of loops is known
        yield Cell(Scenario(_floats(name), 3, max_new_tokens=8), GENERATE, ("target-calls",), smoke=True)

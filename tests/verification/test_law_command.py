"""``refspec law``: what is printed is the exact law, and the count of its leaves is right."""

import json
from fractions import Fraction
from itertools import accumulate

import pytest

from refspec import autoregressive, exact_law, speculative_step
from refspec.history import History
from refspec.knobs import PLAIN, SamplingKnobs
from refspec.model import lifted
from toy_models import get_pair
from verification.commands.law import has_exact_value
from verification.leaves import Leaves, largest_that_fits


@pytest.fixture
def law(refspec):
    def run(words):
        code, printed, complained = refspec("law", *words.split(), "--json", "-")
        assert (code, complained) == (0, "")
        return json.loads(printed)

    return run


def masses(document, key, of="probability"):
    def frozen(outcome):
        return tuple(map(tuple, outcome)) if key == "blocks" else tuple(outcome)

    return {frozen(entry[key]): Fraction(entry[of]) for entry in document["outcomes"]}


@pytest.mark.parametrize("name", ["g2", "g3", "exact-zeros"])
def test_the_block_of_one_loop(law, name):
    pair = get_pair(name)
    step = {"target": pair.target, "draft": pair.draft, "prefix": (1,), "lookahead": 2}
    expected = exact_law(lambda chance: (speculative_step(**step, chance=chance).tokens,))
    document = law(f"{name} --lookahead 2 --prompt 1")
    assert masses(document, "blocks") == expected
    assert (document["schema"], document["total"], document["rows"]) == ("refspec.law/1", "1", "fractions")


def test_two_loops_begin_where_the_first_ended(law):
    one = masses(law("g3 --lookahead 1"), "blocks")
    two = masses(law("g3 --lookahead 1 --loops 2"), "blocks")
    assert sum(two.values()) == 1
    for (block,), mass in one.items():
        assert sum(weight for blocks, weight in two.items() if blocks[0] == block) == mass


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--prompt 1",
        "--stop 1",
        "--stop 0,1 --stop 2 --min-tokens 2",
        "--top-p 0.7",
        "--ban 0,1",
        "--temperature 0",
        "--temperature 1/2",
        "--temperature 0.7 --top-k 3",
        "--repetition-penalty 1.3 --prompt 2 --presence-penalty 0.5 --frequency-penalty 0.25",
        "--logit-bias 0=-1 --min-p 0.2",
    ],
)
def test_a_generation_has_the_law_of_the_target_alone(law, options):
    spoken = law(f"context --lookahead 2 --max-new-tokens 3 {options}")
    alone = law(f"context --alone --max-new-tokens 3 {options}")
    assert masses(spoken, "tokens") == masses(spoken, "tokens", "target_probability") == masses(alone, "tokens")
    assert (spoken["total"], spoken["total_variation"], alone["total_variation"]) == ("1", "0", None)
    listed = [entry["decimal"] for entry in spoken["outcomes"]]
    assert listed == sorted(listed, reverse=True)


def test_a_number_is_what_was_written(law):
    """Nine tenths is the mass of three tokens here: as the float 0.9 it would be reached only by rounding."""
    pair = get_pair("g2")
    knobs = SamplingKnobs(top_p=Fraction(9, 10))
    expected = exact_law(
        lambda chance: autoregressive.generate(
            target=pair.target, prompt=(), max_new_tokens=1, knobs=knobs, chance=chance
        )
    )
    document = law("g2 --alone --max-new-tokens 1 --top-p 0.9")
    assert masses(document, "tokens") == expected == {(0,): Fraction(4, 9), (1,): Fraction(1, 3), (2,): Fraction(2, 9)}
    assert document["knobs"] == {"top_p": "9/10"}


@pytest.mark.parametrize(
    ("knobs", "exact"),
    [
        (PLAIN, True),
        (SamplingKnobs(temperature=0), True),
        (SamplingKnobs(temperature="1/3", top_k=2), True),
        (SamplingKnobs(temperature="0.7"), False),
        (SamplingKnobs(presence_penalty="0.1"), False),
        (SamplingKnobs(logit_bias={1: 2}), False),
    ],
)
def test_which_knobs_have_an_exact_value_on_fractions(knobs, exact):
    row = get_pair("context").target.score((), ())[0]
    assert has_exact_value(knobs) == exact
    if exact:
        knobs.row(row, kind="weights")
    else:
        with pytest.raises(TypeError):
            knobs.row(row, kind="weights", history=History((), (0,)))


def test_the_table(refspec, here):
    code, printed, complained = refspec("law", "g3", "--lookahead", 2, "--max-new-tokens", 2, "--json", "out.json")
    assert (code, complained) == (0, "")
    title, header, *rows, total, variation = printed.splitlines()
    assert title == "pair g3, law of the generation, K = 2, at most 2 tokens, rows: fractions"
    assert header.split() == ["outcome", "probability", "decimal", "target", "alone"]
    assert rows[0].split() == ["0", "0", "2/5", "0.4", "2/5"]
    assert total.split() == ["total", "1", "1", "1"]
    assert variation == "total variation from the target alone: 0, exact"
    assert len(json.loads((here / "out.json").read_text(encoding="utf-8"))["outcomes"]) == len(rows)


def test_a_long_fraction_is_told_once_and_a_very_long_one_in_the_json(refspec):
    _, two, _ = refspec("law", "g2", "--lookahead", "1", "--max-new-tokens", "2", "--presence-penalty", "1")
    line = next(line for line in two.splitlines() if line.startswith("0 1 "))
    fraction, decimal, *alone = line.split()[2:]
    assert float(Fraction(fraction)) == pytest.approx(float(decimal), rel=1e-7)
    assert (len(fraction) > 40, alone) == (True, ["the", "same"])
    _, four, _ = refspec("law", "g2", "--lookahead", "1", "--max-new-tokens", "4", "--presence-penalty", "1")
    assert "characters; --json has them)" in four


def test_a_pair_of_ones_own(law, module):
    module(
        "my_pairs",
        """
        from toy_models import Pair, get_pair
        made = get_pair("g2")

        def pair():
            return Pair("any", "", made.target, made.draft)
        """,
    )
    for name in ("my_pairs:made", "my_pairs:pair"):
        document = law(f"{name} --lookahead 1")
        assert document["pair"] == name
        assert masses(document, "blocks") == masses(law("g2 --lookahead 1"), "blocks")


@pytest.mark.parametrize("name", ["context", "exact-zeros", "g3", "identical", "disjoint", "random-logits"])
@pytest.mark.parametrize("lookahead", [0, 1, 2, 3])
def test_the_leaves_of_a_loop_are_counted(name, lookahead):
    pair = get_pair(name)
    target, draft = lifted(pair.target), lifted(pair.draft)
    walked = 0

    def procedure(chance):
        nonlocal walked
        walked += 1
        step = speculative_step(target=target, draft=draft, prefix=(), lookahead=lookahead, chance=chance)
        return step.tokens

    exact_law(procedure)
    assert Leaves(target=target, draft=draft, knobs=PLAIN).loop(History(), lookahead) == walked


def test_what_is_said_to_fit_is_the_largest(refspec):
    pair = get_pair("g2")

    def count(lookahead):
        return Leaves(target=pair.target, draft=pair.draft, knobs=PLAIN).loop(History(), lookahead)

    fits = largest_that_fits(count, 0, 9)
    assert count(fits) <= 10**6 < count(fits + 1)
    assert f"--lookahead {fits} would fit" in refspec("law", "g2", "--lookahead", 9)[2]


def test_nothing_fits():
    assert largest_that_fits(lambda number: 10 + number, 0, 5, most=9) is None
    assert [largest_that_fits(list(accumulate([1] * 9)).__getitem__, 0, n, most=4) for n in (2, 9)] == [1, 3]

"""The second derivation against the first: equal as fractions, on named pairs, and it imports nothing of the first."""

import ast
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from refspec import exact_law, speculative_step
from refspec.autoregressive import generate
from refspec.history import History
from refspec.knobs import SamplingKnobs
from refspec.model import next_rows
from refspec.table import compile_table
from toy_models import get_pair
from verification import derived_laws

PAIRS = ["context", "exact-zeros", "one-hot-draft", "single-residual", "second-order", "g3", "acceptance-0.5"]
CASES = [(name, lookahead) for name in PAIRS for lookahead in (1, 2, 3)]


def exact_tables(name, prompt=()):
    """The pair, its tables in fractions, and the states after the prompt."""
    pair = get_pair(name)
    tables = [compile_table(model, prompts=[prompt]) for model in (pair.target, pair.draft)]
    return pair, *tables, tuple(table.starts[prompt] for table in tables)


def sequences(vocabulary, lengths):
    return [tokens for length in lengths for tokens in product(range(vocabulary), repeat=length)]


def enumerated_blocks(pair, lookahead, prompt):
    return exact_law(
        lambda chance: (
            speculative_step(
                target=pair.target, draft=pair.draft, prefix=prompt, lookahead=lookahead, chance=chance
            ).tokens
        )
    )


@pytest.mark.parametrize(("name", "lookahead"), CASES)
def test_the_law_of_a_block_and_of_its_length_is_that_of_the_code_that_runs(name, lookahead):
    prompt = (1,)
    pair, target, draft, start = exact_tables(name, prompt)
    levels = derived_laws.accepted_levels(target, draft, start, lookahead)
    law = enumerated_blocks(pair, lookahead, prompt)
    derived = derived_laws.block_law(target, draft, levels)
    blocks = sequences(pair.vocabulary, range(1, lookahead + 2))
    assert [law.get(block, 0) for block in blocks] == derived.tolist()
    lengths = Counter()
    for block, mass in law.items():
        lengths[len(block)] += mass
    assert [lengths[length] for length in range(1, lookahead + 2)] == derived_laws.count_law(levels).tolist()


@pytest.mark.parametrize("name", PAIRS)
def test_the_laws_are_fractions_and_sum_to_one(name):
    _, target, draft, start = exact_tables(name)
    levels = derived_laws.accepted_levels(target, draft, start, 3)
    for law in (derived_laws.block_law(target, draft, levels), derived_laws.count_law(levels)):
        assert all(isinstance(mass, Fraction | int) for mass in law)
        assert sum(law) == 1


@pytest.mark.parametrize(("name", "lookahead"), CASES)
def test_merged_levels_are_the_prefixes_added_up(name, lookahead):
    pair = get_pair(name).floats
    target, draft = compile_table(pair.target), compile_table(pair.draft)
    levels = derived_laws.accepted_levels(target, draft, (0, 0), lookahead)
    merged = derived_laws.merged_levels(target, draft, (0, 0), lookahead)
    for level, short in zip(levels, merged, strict=True):
        added = Counter()
        for target_state, draft_state, weight in zip(*level, strict=True):
            added[target_state, draft_state] += float(weight)
        states = list(zip(short.target_states.tolist(), short.draft_states.tolist(), strict=True))
        assert states == sorted(added)
        assert short.weight == pytest.approx([added[state] for state in states], abs=1e-15)


def test_merged_levels_stay_small_where_prefixes_do_not():
    pair = get_pair("context").floats
    target, draft = compile_table(pair.target), compile_table(pair.draft)
    merged = derived_laws.merged_levels(target, draft, (0, 0), 8)
    assert [len(level.weight) for level in merged] == [1] + [4] * 8


STOPS = [(), ((1,),), ((0,), (2,)), ((1, 1),), ((0,), (1, 2)), ((0, 1, 0), (2, 0))]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("least", [0, 2])
@pytest.mark.parametrize("name", ["context", "exact-zeros", "single-residual"])
def test_the_levels_of_an_output_are_those_of_the_target_and_end_where_it_stops(name, least, stop):
    length = 3
    pair, knobs = get_pair(name), SamplingKnobs(min_tokens=least)
    asked = {"target": pair.target, "prompt": (), "max_new_tokens": length, "knobs": knobs, "stop_sequences": stop}
    law = exact_law(lambda chance: generate(**asked, chance=chance))
    end_tokens = tuple(sequence[0] for sequence in stop if len(sequence) == 1)
    target = compile_table(pair.target, knobs=knobs, end_tokens=end_tokens, depth=length)
    levels = derived_laws.output_levels(target, target.starts[()], length, stop, least)
    assert len(levels) == length
    for i, level in enumerate(levels):
        goes_on = Counter()
        for output, mass in law.items():
            if len(output) > i:
                goes_on[output[:i]] += mass
        prefixes = sequences(pair.vocabulary, [i])
        assert level.weight.tolist() == [goes_on[prefix] for prefix in prefixes]
        histories = [History(output=prefix, end_tokens=end_tokens) for prefix in prefixes]
        rows = np.concatenate([next_rows(pair.target, history, knobs=knobs) for history in histories])
        assert target.rows[level.target_states].tolist() == rows.tolist()


def test_a_case_by_hand():
    """Overlap 3/5 in every context; residual (3/4, 1/4, 0, 0)."""
    _, target, draft, start = exact_tables("g2")
    levels = derived_laws.accepted_levels(target, draft, start, 1)
    tenths = derived_laws.block_law(target, draft, levels)[:4] * 10
    assert tenths.tolist() == [3, 1, 0, 0]
    assert derived_laws.count_law(levels).tolist() == [Fraction(2, 5), Fraction(3, 5)]
    assert levels[1].weight.tolist() == [Fraction(n, 10) for n in (1, 2, 2, 1)]


def test_the_module_imports_nothing_of_the_reference():
    source = Path(derived_laws.__file__).read_text(encoding="utf-8")
    names = [node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    names += [a.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for a in node.names]
    assert sorted(names) == ["collections.abc", "numpy", "numpy.typing", "typing"]


def test_loading_the_module_does_not_load_the_reference():
    loaded = "import sys, verification.derived_laws; print([m for m in sys.modules if m.startswith('refspec')])"
    run = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "[]"


def test_one_number_for_a_pair_of_states():
    draft = compile_table(get_pair("g3").floats.draft)
    codes = derived_laws.joint_codes(np.arange(3).repeat(3), np.tile(np.arange(3), 3), draft)
    assert codes.tolist() == list(range(9))

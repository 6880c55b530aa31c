"""Every line of the table in docs/numerics.md, on the clear path and on the batched one."""

import re
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from refspec import batched, speculative
from refspec.chance import ReplayedChance
from refspec.distribution import as_logits, as_rows, as_weights, overlap, sum_tolerance

PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"
HEAD = ["type", "V", "row", "answer", "why"]
ANSWERS = {"accepted": (True, True), "refused": (False, False), "clear path only": (True, False)}
FLOATS = ["float64", "float32", "float16", "bfloat16"]
VOCABULARIES = [1, 2, 1000, 32_000, 128_256, 200_000]


def parsed(text):
    """The lines of the one table, as lists of cells."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    head, rule, *body = lines
    assert head == HEAD
    assert all(set(cell) == {"-"} for cell in rule)
    return body


def runs(line):
    """What a line asks for, type by type and vocabulary by vocabulary: (type, V, row, answer)."""
    types, vocabularies, row, answer, _ = line
    return [
        (name, int(vocabulary.replace("\N{NO-BREAK SPACE}", "")), row, answer)
        for name in types.split(", ")
        for vocabulary in vocabularies.split(", ")
    ]


TABLE = parsed(PAGE.read_text(encoding="utf-8"))
RUNS = [run for line in TABLE for run in runs(line)]


def logits(vocabulary):
    """Normal, with the largest at index 0: the token that is drafted."""
    drawn = np.random.default_rng(vocabulary).normal(scale=3, size=vocabulary)
    drawn[0] = drawn.max() + 1
    return drawn


def softmax(vocabulary, dtype=np.float64):
    weights = np.exp(logits(vocabulary).astype(dtype))
    return weights / np.sum(weights)


def added(vocabulary, dtype, adding):
    """A softmax in a type, whose total is added from left to right in another and then rounded."""
    shifted = logits(vocabulary).astype(dtype)
    weights = np.exp(shifted - shifted[0])
    return weights / np.cumsum(weights, dtype=adding)[-1].astype(dtype)


def peak(vocabulary, dtype, others):
    row = np.full(vocabulary, others, dtype=dtype)
    row[0] = 1 - (vocabulary - 1) * float(others)
    return row


def lost_tail(dtype, vocabulary):
    weights = np.full(vocabulary, 2.0**-25, dtype=dtype)
    weights[0] = 1
    total = np.cumsum(weights)[-1]
    assert total == 1
    return weights / total


def log_softmax(dtype, vocabulary):
    """Of logits whose total has a logarithm of 16 to 32: the row that misses one by most."""
    rows = []
    for largest in np.linspace(17, 28, 50, dtype=dtype):
        shifted = logits(vocabulary).astype(dtype)
        shifted += largest - shifted[0]
        rows.append(np.exp(shifted - np.log(np.sum(np.exp(shifted)))))
    return max(rows, key=lambda row: abs(np.sum(row, dtype=np.float64) - 1))


def fractions(vocabulary, missing=0):
    weights = [i % 7 + 1 for i in range(vocabulary)]
    row = [Fraction(weight, sum(weights)) for weight in weights]
    return np.array([row[0] - missing, *row[1:]], dtype=object)


def widened(narrow):
    return lambda dtype, vocabulary: softmax(vocabulary).astype(narrow).astype(dtype)


def scaled(factor):
    return lambda dtype, vocabulary: (softmax(vocabulary) * factor).astype(dtype)


def with_first(value):
    return lambda dtype, vocabulary: np.array([value] + [0] * (vocabulary - 1)).astype(dtype)


def negative(dtype, vocabulary):
    return np.array([1.25, -0.25] + [0] * (vocabulary - 2)).astype(dtype)


def overflowed(dtype, vocabulary):
    with np.errstate(over="ignore"):
        total = np.array(vocabulary).astype(dtype)
    return np.ones(vocabulary, dtype=dtype) / total


def smallest(dtype):
    return ml_dtypes.finfo(dtype).smallest_subnormal


def rounded_to_zero(dtype, vocabulary):
    tiny = float(smallest(dtype)) / 4
    return np.array([tiny, 1 - tiny] + [0] * (vocabulary - 2)).astype(dtype)


ROWS = {  # what the table calls a row: how it is made, from a type and a vocabulary
    "softmax in float64, rounded": scaled(1),
    "softmax in float32, rounded": lambda dtype, size: softmax(size, np.float32).astype(dtype),
    "softmax in the type, total added one by one": lambda dtype, size: added(size, dtype, dtype),
    "softmax in the type, total added one by one in float32": lambda dtype, size: added(size, dtype, np.float32),
    "a peak, and a tail that its total in float32 lost": lost_tail,
    "exp of a log-softmax with logits up to 28": log_softmax,
    "1/V everywhere": lambda dtype, size: np.full(size, 1 / size).astype(dtype),
    "a peak, and the smallest subnormal everywhere else": lambda dtype, size: peak(size, dtype, smallest(dtype)),
    "a peak, and -0.0 everywhere else": lambda dtype, size: peak(size, dtype, -0.0),
    "a one, and zeros": with_first(1),
    "ones": lambda dtype, size: np.ones(size, dtype=dtype),
    "weights over their total": lambda dtype, size: fractions(size),
    "10⁻³⁰ missing": lambda dtype, size: fractions(size, Fraction(1, 10**30)),
    "softmax in float64, 1/32 missing": scaled(1 - 1 / 32),
    "softmax in float64, 1/32 too much": scaled(1 + 1 / 32),
    "softmax in float64, 1/256 missing": scaled(1 - 1 / 256),
    "softmax in float64, 10⁻⁴ missing": scaled(1 - 1e-4),
    "softmax in float64, 10⁻⁹ missing": scaled(1 - 1e-9),
    "equal logits, total kept in the type": overflowed,
    "bfloat16 row, widened": widened(ml_dtypes.bfloat16),
    "float16 row, widened": widened(np.float16),
    "float32 row, widened": widened(np.float32),
    "NaN": with_first(np.nan),
    "inf": with_first(np.inf),
    "-inf": with_first(-np.inf),
    "a negative entry in a sum of one": negative,
    "zeros": lambda dtype, size: np.zeros(size, dtype=dtype),
    "entries whose sum overflows": lambda dtype, size: np.full(size, 1.5e308, dtype=dtype),
    "drafted token rounded to 0": rounded_to_zero,
    "no entries": lambda dtype, size: np.empty(size, dtype=dtype),
    "a float beside a fraction": lambda dtype, size: np.array([Fraction(1, 2), 0.5], dtype=dtype),
    "a masked array": lambda dtype, size: np.ma.array([0.5, 0.5], dtype=dtype),
}


def made(name, vocabulary, row):
    dtype = np.dtype(object if name == "Fraction" else getattr(ml_dtypes, name, name))
    return ROWS[row](dtype, vocabulary)


def clear(row):
    """The clear path: the row as the target's, twice, and as the draft's, from which token 0 was drafted."""
    rows, chance = row[None], ReplayedChance(accept_u=0.5, final_u=0.25)
    tokens = speculative.verify_draft(target_rows=rows[[0, 0]], draft_rows=rows, draft_tokens=[0], chance=chance).tokens
    return [*tokens, -1][:2]


def twin(row):
    rows, token = row[None][[0, 0]][None], np.zeros((1, 1), dtype=int)
    (tokens,) = batched.verify_draft(
        target_rows=rows,
        draft_rows=rows[:, :1],
        draft_tokens=token,
        accept_u=np.full((1, 1), 0.5),
        final_u=np.full(1, 0.25),
    )
    return tokens.tolist()


def outcome(verify, row):
    """The tokens, or the message of the refusal."""
    try:
        return verify(row)
    except ValueError as refusal:
        return str(refusal)


def named(message):
    """The value that a refusal names: the first word of its message that is a value or a type."""
    return re.search(r"nan|-?inf|-?\d+\.\d+(e-\d+)?|dtype \S+|masked|no entries", message)[0]


@pytest.mark.parametrize(("name", "vocabulary", "row", "answer"), RUNS, ids=lambda cell: str(cell).replace(" ", "_"))
def test_a_line_of_the_table_is_what_both_paths_do(name, vocabulary, row, answer):
    given = made(name, vocabulary, row)
    before = given.copy()
    found = [outcome(verify, given) for verify in (clear, twin)]
    assert tuple(isinstance(each, list) for each in found) == ANSWERS[answer], found
    assert given.tobytes() == before.tobytes()
    if answer == "accepted":
        assert found[0] == found[1]
    if answer == "refused" and name != "Fraction":  # of which the twin names the type
        assert all(re.match(r"(sum of )?target|draft", message) for message in found)
        assert named(found[0]) == named(found[1])


def test_the_table_covers_every_type_and_vocabulary_in_both_answers():
    for wanted in ("accepted", "refused"):
        covered = {(name, vocabulary) for name, vocabulary, _, answer in RUNS if answer == wanted}
        assert {(name, vocabulary) for name in FLOATS for vocabulary in VOCABULARIES} <= covered


@pytest.mark.parametrize(
    ("vocabulary", "stated"), [(2, [2.2e-15, 1.2e-6, 0.00098, 0.0078]), (200_000, [2.2e-11, 0.012, 0.013, 0.02])]
)
def test_the_tolerances_are_those_that_the_page_states(vocabulary, stated):
    types = [made(name, 1, "zeros").dtype for name in FLOATS]
    assert [float(f"{sum_tolerance(dtype, vocabulary):.2g}") for dtype in types] == stated


def test_no_line_is_there_twice_and_no_row_is_unused():
    assert len(RUNS) == len(set(RUNS))
    assert {row for _, _, row, _ in RUNS} == set(ROWS)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("| float64 | 2 | what nobody knows | accepted | - |", KeyError),
        ("| float63 | 2 | zeros | refused | - |", TypeError),
        ("| float64 | two | zeros | refused | - |", ValueError),
        ("| float64 | 2 | zeros | perhaps | - |", KeyError),
        ("| float64 | 2 | zeros | accepted | - |", AssertionError),
        ("| float64 | 2 | a one, and zeros | refused | - |", AssertionError),
    ],
)
def test_a_line_that_cannot_be_run_or_is_wrong_fails(line, error):
    text = PAGE.read_text(encoding="utf-8").replace("|---|---|---|---|---|\n", f"|---|---|---|---|---|\n{line}\n")
    with pytest.raises(error):
        test_a_line_of_the_table_is_what_both_paths_do(*runs(parsed(text)[0])[0])


@pytest.mark.parametrize("narrow", ["bfloat16", "float16", "float32"])
def test_a_widened_row_is_told_its_type_and_is_accepted_in_it(narrow):
    row = made("float64", 1000, f"{narrow} row, widened")
    for verify in (clear, twin):
        assert f"its entries are {narrow} numbers: give it as {narrow}, or normalise it" in outcome(verify, row)
        assert isinstance(outcome(verify, row.astype(made(narrow, 1, "zeros").dtype)), list)


@pytest.mark.parametrize("row", ["softmax in float64, 1/32 missing", "softmax in float64, 10⁻⁹ missing", "zeros"])
def test_a_row_that_no_narrower_type_excuses_is_told_nothing_of_types(row):
    for verify in (clear, twin):
        assert "give it as" not in outcome(verify, made("float64", 1000, row))


@pytest.mark.parametrize("name", FLOATS)
def test_numbers_of_every_type_are_widened_without_a_change(name):
    row = made(name, 1000, "a peak, and the smallest subnormal everywhere else")
    for numbers in (as_rows(row[None], name="row")[0], as_weights(row, name="row"), as_logits(row, name="row")):
        assert numbers.dtype == np.float64
        assert numbers.tolist() == [float(number) for number in row]
        assert numbers[1] > 0


class Tensor:
    """What another library's array does that NumPy cannot read."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 1

    def __array__(self, dtype=None, copy=None):
        raise self.error

    def __repr__(self):
        return "tensor([0.5, 0.5])"


@pytest.mark.parametrize("error", [TypeError("no such scalar type"), RuntimeError("detach it first")])
def test_an_array_that_numpy_cannot_read_is_refused_with_what_its_library_says(error):
    tensor = Tensor(error)
    for refused in (
        lambda: as_rows(tensor, name="target"),
        lambda: overlap(tensor, [1.0]),
        lambda: ReplayedChance(final_u=0.5).draw(tensor),
    ):
        with pytest.raises(ValueError, match=re.escape(f"NumPy cannot read tensor([0.5, 0.5]) ({error})")):
            refused()

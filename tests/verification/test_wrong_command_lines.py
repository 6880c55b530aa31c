"""What a person can get wrong: one line on the error stream that names it, nothing printed, exit code 4."""

import subprocess
import sys

import pytest

REFSPEC = [sys.executable, "-c", "from verification.cli import main; main()"]

PAIRS = """
    import numpy as np
    from toy_models import Pair, TabularModel, get_pair

    two, three = TabularModel({(): (1, 2)}), TabularModel({(): (1, 2, 3)})
    mismatch = Pair("mine", "", two, three)
    no_models = Pair("mine", "", 1, 2)
    number = 7

    class Other:
        def __init__(self, vocabulary=2, kind="weights"):
            self.vocabulary, self.kind = vocabulary, kind
        def score(self, prefix, continuation):
            return np.ones((len(continuation) + 1, 2))
        def state_key(self, tokens):
            return ()

    class NotNumbers(Other):
        def score(self, prefix, continuation):
            return np.full((len(continuation) + 1, 2), np.nan)

    class Long(Other):
        def state_key(self, tokens):
            return tokens

    empty = Pair("mine", "", Other(0), Other(0))
    unkind = Pair("mine", "", Other(), Other(kind="odds"))
    not_numbers = Pair("mine", "", NotNumbers(), Other())
    long = Pair("mine", "", Long(), Long())

    def gives_a_word():
        return "context"
"""

ADAPTERS = """
    class OnlyVerify:
        def verify(self, **asked):
            raise RuntimeError("not called")
    class Claims(OnlyVerify):
        claims = {"lossles"}
    nothing = 3
"""

CHECK = [
    ("check --budget huge", "huge"),
    ("check --alpha 0", "alpha is 0.0"),
    ("check --alpha tiny", "tiny"),
    ("check --seed 1.5", "1.5"),
    ("check --jobs 0", "0"),
    ("check --jobs 1 --lookahead 99", "no lookahead 99"),
    ("check --jobs 1 --pair contexts", "no pair 'contexts'"),
    ("check --jobs 1 --property lossless", "no property 'lossless'"),
    ("check --jobs 1 --text missing.txt", "missing.txt"),
    ("check --jobs 1 --text short.txt", "short.txt"),
    ("check --json missing/out.json", "missing/out.json"),
    ("check missing_module:Adapter", "missing_module"),
    ("check my_adapters:Missing", "'Missing'"),
    ("check my_adapters:nothing", "my_adapters:nothing"),
    ("check my_adapters:Claims", "'lossles'"),
    ("check my_adapters.py:OnlyVerify", "names a file"),
]
LAW = [
    ("law", "PAIR"),
    ("law contexts --lookahead 2", "no pair 'contexts'"),
    ("law context --lookahead many", "many"),
    ("law context --lookahead -1", "-1"),
    ("law context --lookahead 65", "65"),
    ("law context --lookahead 9", "--lookahead 9: more than 1,000,000 leaves"),
    ("law random-logits-large --lookahead 1", "random-logits-large, --lookahead 1"),
    ("law context --lookahead 2 --max-new-tokens 0", "0"),
    ("law context --lookahead 2 --max-new-tokens 40", "--max-new-tokens 40"),
    ("law context --alone --max-new-tokens 40", "--max-new-tokens 40"),
    ("law context --lookahead 3 --loops 9", "--loops 9"),
    ("law context --lookahead 2 --loops 0", "0"),
    ("law context --lookahead 2 --loops 2 --max-new-tokens 3", "--loops 2 and --max-new-tokens 3"),
    ("law context --alone", "--alone"),
    ("law context --lookahead 2 --stop 1", "--stop"),
    ("law context --lookahead 2 --min-tokens 2", "--min-tokens 2"),
    ("law context --lookahead 2 --max-new-tokens 3 --stop 1,9", "--stop[1]: token 9"),
    ("law context --lookahead 2 --max-new-tokens 3 --stop=", "--stop ''"),
    ("law context --lookahead 2 --prompt 0,4", "--prompt[1]: token 4"),
    ("law context --lookahead 2 --prompt 0;1", "'0;1'"),
    ("law context --lookahead 2 --prompt -1", "'-1'"),
    ("law context --lookahead 2 --temperature hot", "'hot'"),
    ("law context --lookahead 2 --temperature nan", "'nan'"),
    ("law context --lookahead 2 --temperature -1", "temperature: Fraction(-1, 1)"),
    ("law context --lookahead 2 --temperature 1e999999999", "'1e999999999'"),
    ("law context --lookahead 2 --temperature 1/0", "'1/0'"),
    ("law context --lookahead 2 --top-k 0", "top_k: 0"),
    ("law context --lookahead 2 --top-k 1.5", "'1.5'"),
    ("law context --lookahead 2 --top-p 1.01", "top_p: Fraction(101, 100)"),
    ("law context --lookahead 2 --min-p 2", "min_p: Fraction(2, 1)"),
    ("law context --lookahead 2 --ban 4", "--ban[0]: token 4"),
    ("law context --lookahead 2 --ban 0,1,2,3", "(0, 1, 2, 3)"),
    ("law context --lookahead 2 --logit-bias 0:1", "'0:1'"),
    ("law context --lookahead 2 --logit-bias 4=1", "--logit-bias[0]: token 4"),
    ("law context --lookahead 2 --logit-bias 1=1 --logit-bias 1=2", "token 1 twice"),
    ("law context --lookahead 2 --repetition-penalty 0", "repetition_penalty: Fraction(0, 1)"),
    ("law context --lookahead 2 --presence-penalty inf", "'inf'"),
    ("law context --lookahead 2 --frequency-penalty much", "'much'"),
    ("law context --lookahead 2 --text fable.txt", "fable.txt"),
    ("law ngram-folded --lookahead 2 --text missing.txt", "missing.txt"),
    ("law ngram-folded --lookahead 2 --text short.txt", "short.txt"),
    ("law ngram-words --lookahead 1 --text wordless.txt", "'ngram-words'"),
    ("law ngram-folded --lookahead 2 --text latin.txt", "byte 3 is not UTF-8"),
    ("law context --lookahead 2 --json .", ".: no file"),
    ("law context --lookahead 2 --json missing/out.json", "missing/out.json"),
    ("law context eight --lookahead 2", "eight"),
    ("law context --lookahead 2 --colour", "--colour"),
    ("law missing_module:pair --lookahead 2", "missing_module"),
    ("law my_pairs:absent --lookahead 2", "'absent'"),
    ("law my_pairs: --lookahead 2", "'my_pairs:'"),
    ("law my_pairs.py:mismatch --lookahead 2", "my_pairs.py:mismatch"),
    ("law my_pairs:mismatch --lookahead 2", "target 2, draft 3"),
    ("law my_pairs:no_models --lookahead 2", "no 'vocabulary'"),
    ("law my_pairs:number --lookahead 2", "my_pairs:number"),
    ("law my_pairs:gives_a_word --lookahead 2", "'context'"),
    ("law my_pairs:empty --lookahead 2", "vocabulary 0"),
    ("law my_pairs:unkind --lookahead 2", "'odds'"),
    ("law my_pairs:not_numbers --lookahead 2", "nan"),
    ("law my_pairs:long --lookahead 30", "my_pairs:long, --lookahead 30"),
]
PLAN = [
    ("plan", "PAIR"),
    ("plan contexts", "no pair 'contexts'"),
    ("plan context --operation replay", "replay"),
    ("plan context --lookahead 0", "0"),
    ("plan context --bias 0", "--bias is 0.0"),
    ("plan context --bias 1.5", "--bias is 1.5"),
    ("plan context --bias nan", "--bias is nan"),
    ("plan context --bias small", "small"),
    ("plan context --samples 0", "0"),
    ("plan context --samples 1e6", "1e6"),
    ("plan context --samples 100 --bias 0.1", "--bias 0.1 and --samples 100"),
    ("plan context --alpha 1", "--alpha is 1.0"),
    ("plan context --alpha nan", "--alpha is nan"),
    ("plan context --findings 0", "0"),
    ("plan context --prompt 9", "--prompt[0]: token 9"),
    ("plan context --max-new-tokens 3", "--max-new-tokens 3"),
    ("plan eight --operation generate --max-new-tokens 9", "--max-new-tokens 9"),
    ("plan context --adapter missing_module:Adapter", "missing_module"),
    ("plan context --adapter my_adapters:nothing", "my_adapters:nothing"),
    ("plan context --adapter my_adapters:OnlyVerify --operation generate", "'generate'"),
    ("plan ngram-folded --text short.txt", "short.txt"),
    ("plan my_pairs:mismatch", "target 2, draft 3"),
    ("plan my_pairs:not_numbers", "nan"),
    ("plan my_pairs:long --lookahead 30", "20000 states"),
    ("plan context --json missing/out.json", "missing/out.json"),
]
OF_PAIRS = [
    ("pairs contexts", "no pair 'contexts'"),
    ("pairs context contexts", "no pair 'contexts'"),
    ("pairs --text missing.txt", "missing.txt"),
    ("pairs --text short.txt", "short.txt"),
    ("pairs context --text fable.txt", "fable.txt"),
    ("pairs my_pairs:mismatch", "target 2, draft 3"),
    ("pairs my_pairs:not_numbers", "nan"),
    ("pairs context --json .", ".: no file"),
    ("pairs --wide", "--wide"),
    ("pair", "pair"),
]


@pytest.fixture
def folder(here, module):
    """A working directory with pairs, adapters and texts."""
    module("my_pairs", PAIRS)
    module("my_adapters", ADAPTERS)
    (here / "fable.txt").write_text("The fox saw the grapes. The grapes hung high.\n" * 5, encoding="utf-8")
    (here / "short.txt").write_text("ab", encoding="utf-8")
    (here / "wordless.txt").write_text("aaaa" * 9 + "_", encoding="utf-8")
    (here / "latin.txt").write_bytes(b"caf\xe9 au lait, caf\xe9 noir")
    return here


def is_one_line(left, told):
    code, printed, complained = left
    assert (code, printed) == (4, "")
    (line,) = complained.splitlines()
    assert line.startswith("refspec: ")
    assert told in line
    assert "Traceback" not in line


@pytest.mark.parametrize(("words", "told"), CHECK + LAW + PLAN + OF_PAIRS)
def test_a_wrong_command_line_is_one_line(refspec, folder, words, told):
    is_one_line(refspec(*words.split()), told)


def test_no_wrong_command_line_is_there_twice():
    lines = [words for words, _ in CHECK + LAW + PLAN + OF_PAIRS]
    assert len(set(lines)) == len(lines) >= 55


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("law context --lookahead 9", "--lookahead 9"),
        ("law my_pairs:mismatch --lookahead 2", "target 2, draft 3"),
        ("plan context --bias 2", "2.0"),
        ("pairs contexts", "'contexts'"),
        ("check --budget huge", "huge"),
    ],
)
def test_in_a_process_of_its_own(folder, words, told):
    run = subprocess.run([*REFSPEC, *words.split()], capture_output=True, text=True, check=False)  # noqa: S603
    is_one_line((run.returncode, run.stdout, run.stderr), told)


FOREIGN = """
    import sys
    from toy_models import Pair, TabularModel

    class Raises:
        vocabulary, kind = 2, "weights"
        def score(self, prefix, continuation):
            raise RuntimeError("no device\\nno memory")
        def state_key(self, tokens):
            return ()

    class NoKey(Raises):
        def state_key(self, tokens):
            return []

    class Flat(Raises):
        def score(self, prefix, continuation):
            return [0.5, 0.5]

    in_score = Pair("mine", "", Raises(), Raises())
    in_state_key = Pair("mine", "", NoKey(), NoKey())
    in_shape = Pair("mine", "", Flat(), Flat())
    in_table = Pair("mine", "", *[TabularModel({(0,): (1, 1)})] * 2)  # it has no row for the beginning of a text

    def in_making():
        raise RuntimeError("no device")

    def leaving():
        sys.exit(0)
"""


@pytest.mark.parametrize("words", ["law {} --lookahead 2", "plan {}", "pairs {}"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("in_score", "no device no memory"),
        ("in_state_key", "unhashable"),
        ("in_shape", "(2,)"),
        ("in_table", "context ()"),
        ("in_making", "no device"),
        ("leaving", "SystemExit"),
    ],
)
def test_foreign_code_that_fails_is_one_line_too(refspec, module, words, name, told):
    """As for an adapter the exit code is 3: the command line is right."""
    module("foreign_pairs", FOREIGN)
    code, printed, complained = refspec(*words.format(f"foreign_pairs:{name}").split())
    assert (code, printed) == (3, "")
    (line,) = complained.splitlines()
    assert line.startswith("refspec: ")
    assert told in line


@pytest.mark.parametrize("words", ["law {} --lookahead 2", "plan {}", "pairs {}", "check {}", "plan g3 --adapter {}"])
@pytest.mark.parametrize("code", ["raise RuntimeError('no\\ndevice')", "def pair(:", "import sys; sys.exit(0)"])
def test_a_foreign_module_that_fails_is_one_line_too(refspec, module, words, code):
    module("failing_module", code)
    left, printed, complained = refspec(*words.format("failing_module:pair").split())
    assert (left, printed) == (3, "")
    (line,) = complained.splitlines()
    assert line.startswith("refspec: importing failing_module raised")


def test_a_reader_that_leaves_early_is_told_nothing():
    command = [*REFSPEC, "law", "g3", "--lookahead", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:  # noqa: S603
        run.stdout.close()
        assert run.stderr.read() == ""

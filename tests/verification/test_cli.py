"""The command: exit codes, adapters beside the working directory, the JSON file, and what a person can do wrong.

Random verdicts are those of the suite, at a false-alarm rate of 1e-6 a run.
"""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from verification import commands

SMALL = ("--budget", "smoke", "--pair", "g3", "--property", "next-token-identity", "--jobs", "1")
EXAMINED = ("--budget", "smoke", "--property", "seeded", "--jobs", "1")
REFSPEC = [sys.executable, "-c", "from verification.cli import main; main()"]
FAULTS = [
    "ResampleFromTarget",
    "ResidualByAbsoluteValue",
    "BonusFromDraft",
    "AlwaysAccept",
    "OneRowLate",
    "AcceptUniformReused",
]


def write(folder, name, code):
    (folder / f"{name}.py").write_text(dedent(code), encoding="utf-8")


RIGHT = """
    import numpy as np
    from verification.faults.rule import Rule

    class Adapter(Rule):
        pass

    made = Adapter()

    def verify(*, target_rows, draft_rows, draft_tokens, seed):
        return made.verify(target_rows=target_rows, draft_rows=draft_rows, draft_tokens=draft_tokens, seed=seed)

    class holder:
        adapter = made
"""


# Exit codes.


@pytest.mark.parametrize("name", ["Adapter", "made", "verify", "holder.adapter", "made.verify"])
def test_an_adapter_beside_the_working_directory_holds(refspec, here, name):
    write(here, "my_sampler", RIGHT)
    code, printed, _ = refspec("check", f"my_sampler:{name}", *SMALL)
    assert code == 0
    assert f"my_sampler:{name}, budget smoke, seed 0" in printed


def test_a_module_in_a_package_beside_the_working_directory(refspec, here):
    (here / "my_package").mkdir()
    write(here / "my_package", "deep", RIGHT)
    assert refspec("check", "my_package.deep:Adapter", *SMALL)[0] == 0


def test_without_a_target_the_reference_is_checked(refspec):
    code, printed, _ = refspec("check", *SMALL)
    assert code == 0
    assert printed.strip().startswith("refspec, budget smoke, seed 0")


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_broken(refspec, fault):
    code, printed, _ = refspec("check", f"verification.faults.chain:{fault}", "--budget", "smoke")
    assert code == 1
    assert "BROKEN  next-token-identity (lossless)" in printed


def test_these_are_all_the_faults():
    from verification.faults import chain
    from verification.faults.rule import Rule

    assert [name for name, it in vars(chain).items() if isinstance(it, type) and it.__base__ is Rule] == FAULTS


def test_the_rule_without_a_fault_holds(refspec):
    code, printed, _ = refspec("check", "verification.faults.rule:Rule", "--budget", "smoke")
    assert code == 0
    assert "Holds: " in printed


def test_a_run_that_is_not_on_a_terminal_complains_of_nothing(refspec):
    assert refspec("check", "verification.faults.rule:Rule", *SMALL)[2] == ""


FAILING = """
    import sys

    class InVerify:
        def verify(self, **asked):
            raise RuntimeError("no device")

    class InMaking(InVerify):
        def __init__(self):
            raise RuntimeError("no device")

    class Leaving:
        def verify(self, **asked):
            sys.exit(0)

    class LeavingInMaking(InVerify):
        def __init__(self):
            sys.exit(0)

    class Floats:
        def verify(self, *, draft_tokens, **asked):
            return draft_tokens * 1.5
"""


@pytest.mark.parametrize("name", ["InVerify", "InMaking", "Leaving", "LeavingInMaking", "Floats"])
def test_an_adapter_that_fails_is_inconclusive(refspec, here, name):
    write(here, "failing_sampler", FAILING)
    code, printed, complained = refspec("check", f"failing_sampler:{name}", *SMALL)
    assert code == 3
    assert "Traceback" not in printed + complained


@pytest.mark.parametrize("code", ["raise RuntimeError('no device')", "def verify(:", "import sys; sys.exit(0)"])
def test_a_module_that_fails_is_inconclusive(refspec, here, code):
    write(here, "failing_module", code)
    left, printed, complained = refspec("check", "failing_module:Adapter", *SMALL)
    assert (left, printed, len(complained.strip().splitlines())) == (3, "", 1)
    assert "failing_module" in complained


def test_nothing_ran(refspec, here):
    code, printed, _ = refspec("check", "verification.faults.rule:Rule", "--pair", "eight", "--lookahead", "8")
    assert code == 5
    assert "Nothing was judged" in printed


def test_an_operation_that_is_not_offered_is_nothing_that_ran(refspec, here):
    code, printed, _ = refspec("check", "verification.faults.rule:Rule", "--property", "complete-output")
    assert code == 5
    assert "needs" in printed


def test_interrupted(refspec, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands.check, "check", interrupted)
    code, printed, complained = refspec("check", *SMALL)
    assert (code, printed, complained.strip()) == (2, "", "refspec: interrupted")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["check", "--help"]])
def test_help_and_version(refspec, arguments):
    code, printed, complained = refspec(*arguments)
    assert (code, complained) == (0, "")
    assert "refspec" in printed.lower() or "Usage" in printed


def test_the_help_of_check_lists_the_exit_codes(refspec):
    printed = " ".join(refspec("check", "--help")[1].split())
    for told in ("0 holds", "1 broken", "2 interrupted", "3 inconclusive", "4 usage", "5 nothing ran"):
        assert told in printed


def test_without_a_command_the_help_is_shown(refspec):
    code, printed, complained = refspec()
    assert code in (0, 4)
    assert "Usage: " in printed + complained
    assert "Traceback" not in complained


# What a person can do wrong.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "--budget", "huge"], "huge"),
        (["check", "--alpha", "0"], "alpha is 0.0; expected between 0 and 1"),
        (["check", "--alpha", "1"], "alpha is 1.0"),
        (["check", "--alpha", "nan"], "alpha is nan"),
        (["check", "--alpha", "tiny"], "tiny"),
        (["check", "--seed", "1.5"], "1.5"),
        (["check", "--jobs", "0"], "0"),
        (["check", "--lookahead", "9"], "no lookahead 9; expected one of 1, 2"),
        (["check", "--lookahead", "many"], "many"),
        (["check", "--pair", "contexts"], "no pair 'contexts'; expected one of"),
        (["check", "--property", "lossless"], "no property 'lossless'; expected one of exact-equality"),
        (["check", "--text", "missing.txt"], "missing.txt"),
        (["check", "--text", "."], "."),
        (["check", "--json", "."], ".: no file can be written there"),
        (["check", "--json", "missing/out.json"], "no file can be written there"),
        (["check", "missing_module:Adapter"], "cannot import 'missing_module'"),
        (["check", "math"], "'math'; expected module:object"),
        (["check", "math:"], "expected module:object"),
        (["check", ":pi"], "expected module:object"),
        (["check", ".math:pi"], ".math:pi"),
        (["check", "math:tau.up"], "has no 'up'"),
        (["check", "math:missing"], "'math' has no 'missing'"),
        (["check", "math:pi"], "math:pi: 3.14159"),
        (["check", "my_sampler.py:Adapter"], "names a file"),
        (["check", "samplers/mine:Adapter"], "names a file"),
        (["check", "wrong_claims:Adapter"], "'lossles' is no claim"),
        (["check", "wrong_claims:Word"], "claims is 'standard'"),
        (["check", "wrong_claims:Nested"], "wrong_claims:Nested"),
        (["check", "one:x", "two:y"], "two:y"),
        (["check", "--colour"], "--colour"),
        (["chek"], "chek"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_one_line(refspec, here, arguments, told):
    write(
        here,
        "wrong_claims",
        """
        from verification.faults.rule import Rule
        class Adapter(Rule):
            claims = {"lossles"}
        class Word(Rule):
            claims = "standard"
        class Nested(Rule):
            claims = [["lossless"]]
        """,
    )
    jobs = [] if "--jobs" in arguments or arguments[0] != "check" else ["--jobs", "1"]
    code, printed, complained = refspec(*arguments, *jobs)
    assert (code, printed) == (4, "")
    (line,) = complained.strip().splitlines()
    assert line.startswith("refspec: ")
    assert told in line


def test_a_wrong_command_line_in_a_process_of_its_own(tmp_path):
    run = subprocess.run(  # noqa: S603
        [*REFSPEC, "check", "--pair", "nowhere", "--jobs", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (run.returncode, run.stdout) == (4, "")
    (line,) = run.stderr.strip().splitlines()
    assert line.startswith("refspec: no pair 'nowhere'")


# Texts.


def test_a_text_of_ones_own(refspec, here):
    text = here / "fable.txt"
    text.write_text("The fox saw the grapes. The grapes hung high; the fox leapt, and missed.\n" * 20, encoding="utf-8")
    code, printed, _ = refspec(
        "check",
        *("--budget", "smoke", "--pair", "ngram-folded", "--pair", "ngram-characters", "--jobs", "1"),
        *("--text", text, "--json", "out.json"),
    )
    assert code == 0
    texts = json.loads((here / "out.json").read_text(encoding="utf-8"))["texts"]
    assert list(texts) == [str(text)]
    assert texts[str(text)] in printed


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "0 different characters"),
        (b"aaaa", "1 different characters"),
        (b"ab", "expected at least"),
        (b"caf\xe9 au lait, caf\xe9 noir", "byte 3 is not UTF-8"),
    ],
)
def test_a_text_that_no_model_can_be_fitted_on(refspec, here, content, told):
    (here / "bad.txt").write_bytes(content)
    code, printed, complained = refspec("check", "--text", here / "bad.txt", "--jobs", "1")
    (line,) = complained.strip().splitlines()
    assert (code, printed) == (4, "")
    assert told in line


# Seeds and the JSON file.


def test_a_seed_that_is_drawn_is_printed(refspec, here):
    """Two draws are equal with probability 2**-32."""
    seeds = []
    for _ in range(2):
        code, printed, _ = refspec("check", *EXAMINED, "--vary-seed", "--json", "out.json")
        seeds.append(json.loads((here / "out.json").read_text(encoding="utf-8"))["seed"])
        assert code == 0
        assert f"seed {seeds[-1]} " in " ".join(printed.split())
    assert seeds[0] != seeds[1]


def strict(path):
    """The document; NaN and infinities are no JSON."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


RUNS = {
    "holds": ("refspec", ["--pair", "g3"]),
    "broken": ("verification.faults.chain:AlwaysAccept", ["--pair", "exact-zeros"]),
    "nothing_ran": ("verification.faults.rule:Rule", ["--pair", "eight"]),
    "inconclusive": ("failing_sampler:InVerify", ["--pair", "g3"]),
}


@pytest.mark.parametrize("verdict", RUNS)
def test_the_json_file(refspec, here, verdict):
    write(here, "failing_sampler", FAILING)
    target, options = RUNS[verdict]
    where = [] if target == "refspec" else [target]
    code, _, _ = refspec("check", *where, *options, "--budget", "smoke", "--jobs", "1", "--json", "out.json")
    document = strict(here / "out.json")
    assert code == ["holds", "broken", "", "inconclusive", "", "nothing_ran"].index(verdict)
    assert document["schema"] == "refspec.check/1"
    assert (document["verdict"], document["false_alarm"], document["seed"]) == (verdict, 1e-6, 0)
    assert (document["implementation"], document["budget"]) == (target, "smoke")
    assert set(document["versions"]) == {"refspec", "spec", "python", "numpy", "scipy"}
    assert "smallest_detectable_tv" in document
    for finding in document["findings"]:
        assert set(finding) >= {
            *("property", "pair", "operation", "knobs", "lookahead", "tier", "status", "message"),
            *("samples", "log_e", "chi_square_p", "smallest_detectable_tv"),
        }


def test_infinite_evidence_in_the_json_file_is_a_word(refspec, here):
    refspec("check", *RUNS["broken"][1], RUNS["broken"][0], "--budget", "smoke", "--json", "out.json")
    document = strict(here / "out.json")
    assert document["log_e"] == "inf"
    assert {f["log_e"] for f in document["findings"] if f["property"] == "next-token-identity"} == {"inf"}


def test_workers_do_not_change_the_findings(here):
    found = []
    for jobs in ("1", "2"):
        run = subprocess.run(  # noqa: S603
            [*REFSPEC, "check", "--budget", "smoke", "--pair", "g3", "--jobs", jobs, "--json", "out.json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stderr.strip()) == (0, "")
        document = strict(here / "out.json")
        found.append((document["findings"], document["log_e"], document["verdict"]))
    assert found[0] == found[1]


def test_workers_find_an_adapter_beside_the_working_directory(here):
    write(here, "my_sampler", RIGHT)
    run = subprocess.run(  # noqa: S603
        [*REFSPEC, "check", "my_sampler:Adapter", *SMALL[:-1], "2"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr.strip()) == (0, "")

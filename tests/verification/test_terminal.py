"""What a person reads: the closing sentence, the table, and a broken finding that can be acted on."""

import json
import re
import shlex
import sys
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from verification import cli
from verification.adapters.loopback import Reference
from verification.adapters.protocol import Implementation
from verification.faults import chain
from verification.faults.rule import Rule
from verification.finding import BROKEN, HOLDS, INCONCLUSIVE, NOTHING_RAN, Finding
from verification.properties import PROPERTIES
from verification.report.terminal import closing, show
from verification.runner import BUDGETS, Selection, check


def run(adapter, selection=Selection(pairs=("g3",)), **more):  # noqa: B008
    more = {"budget": BUDGETS["smoke"]} | more
    name = "tested"
    is_reference = isinstance(adapter, Reference)
    return check(Implementation(adapter, name, is_reference=is_reference), selection=selection, **more)


def printed(result, width=80, rerun="refspec check tested"):
    console = Console(file=StringIO(), width=width)
    show(result, console, rerun)
    return console.file.getvalue()


HELD = run(Reference())
WRONG = run(chain.AlwaysAccept(), Selection(pairs=("context", "exact-zeros")))


def test_the_closing_sentence_of_a_run_that_holds():
    sentence = printed(HELD).splitlines()[-1]
    assert sentence == closing(HELD)
    assert sentence.startswith("Holds: ")
    assert f"{HELD.calls:,} calls judged" in sentence
    assert f"{sum(finding.identities for finding in HELD.findings):,} exact identities proved" in sentence
    assert "the false-alarm rate of the whole run is 1e-06" in sentence
    assert f"a joint total variation of {HELD.smallest_detectable_tv:.4f} or more" in sentence
    assert "with probability 0.99" in sentence


def test_the_smallest_bias_is_that_of_the_worst_full_tree():
    trees = [finding.smallest_detectable_tv for finding in HELD.findings if finding.joint]
    others = [finding.smallest_detectable_tv for finding in HELD.findings if not finding.joint]
    assert len(trees) > 1
    assert any(others)
    assert HELD.smallest_detectable_tv == max(trees)


def test_where_no_tree_was_counted_no_joint_bias_is_claimed():
    result = run(Reference(), Selection(("token-count",), ("g3",)))
    assert result.smallest_detectable_tv is None
    assert "no joint total variation is claimed" in closing(result)


def test_the_closing_sentence_states_another_rate():
    assert "the false-alarm rate of the whole run is 0.001" in closing(run(Rule(), alpha=1e-3))


def test_the_closing_sentence_of_the_other_verdicts():
    broken = printed(WRONG).splitlines()[-1]
    assert broken.startswith("Broken: ")
    for name in ("next-token-identity", "support", "block-law"):
        assert name in broken
    assert broken.endswith("the false-alarm rate of the whole run is 1e-06.")
    assert closing(replace(HELD, verdict=NOTHING_RAN)).startswith("Nothing was judged: ")
    assert closing(replace(HELD, verdict=INCONCLUSIVE)).startswith("Inconclusive after ")
    together = closing(replace(HELD, verdict=BROKEN))
    assert together.startswith("Broken: the evidence of all findings together")


def section(result, name, **more):
    """The lines about one broken finding, by their first word."""
    text = printed(result, **more)
    start = text.index(f"BROKEN  {name} (")
    lines = text[start:].split("\n")[1:8]
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.startswith("  ")}


def test_a_broken_finding_can_be_acted_on():
    shown = section(WRONG, "next-token-identity")
    finding = next(f for f in WRONG.findings if f.property == "next-token-identity")
    assert shown["says"] == PROPERTIES["next-token-identity"].sentence
    assert shown["where"] == "pair context, plain, K = 3, verify, 1024 calls"
    assert shown["seen"] == finding.message
    assert "expected " in shown["seen"]
    assert ", observed " in shown["seen"]
    everywhere = [name for name in PROPERTIES if {f.status for f in WRONG.findings if f.property == name} == {HOLDS}]
    assert shown["holds"] == (", ".join(everywhere) or "nothing else that was asked")
    assert shown["log"] == f"E   {finding.log_e:.1f}"


def test_each_broken_property_is_shown_once_what_was_decided_first():
    text = printed(WRONG)
    heads = [line.split()[1] for line in text.splitlines() if line.startswith("BROKEN  ")]
    assert sorted(heads) == sorted({f.property for f in WRONG.findings if f.status == BROKEN})
    tiers = [PROPERTIES[name].tier for name in heads]
    assert tiers == sorted(tiers)  # "deterministic" before "statistical"
    assert len(set(tiers)) == 2


def test_what_failed_is_shown_where_nothing_is_broken():
    class Failing:
        def verify(self, **asked):
            raise RuntimeError("[bold]no device[/bold]")

    result = run(Failing())
    assert result.verdict == INCONCLUSIVE
    assert "seen    verify raised RuntimeError: [bold]no device[/bold]" in printed(result)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_can_be_pasted_is_never_cut_or_wrapped(width):
    for name in ("next-token-identity", "support"):
        rerun = section(WRONG, name, width=width)["rerun"]
        assert rerun.endswith(f"--property {name} --pair context --lookahead 3 --seed 0") or name == "support"
        assert rerun.endswith(" --lookahead 3 --seed 0")


def empty_findings():
    """A run in which every property was met once."""
    made = [
        Finding(name, "random-logits-wide", "draft_and_verify", "plain", 8, it.tier, HOLDS, "", samples=123_456_789)
        for name, it in PROPERTIES.items()
    ]
    return replace(HELD, findings=tuple(made))


@pytest.mark.parametrize("result", [HELD, WRONG, empty_findings()], ids=["held", "wrong", "all"])
def test_at_80_columns_no_name_of_a_property_is_cut(result):
    first = [line.split()[0] for line in printed(result).splitlines() if line.strip()]
    for name in {finding.property for finding in result.findings if finding.pair}:
        assert name in first


@pytest.mark.parametrize("result", [HELD, WRONG, empty_findings()], ids=["held", "wrong", "all"])
def test_at_80_columns_nothing_is_cut_and_no_line_of_the_table_is_longer(result):
    text = printed(result)
    assert "…" not in text
    end = next(text.index(word) for word in ("not asked: ", "\n\n", "Holds: ") if word in text)
    table = text[text.index("property") : end]
    assert max(map(len, table.splitlines())) <= 80


def test_how_a_result_was_come_by_is_said():
    rows = {line.split()[0]: line for line in printed(HELD, width=200).splitlines() if line.strip()}
    assert " proved " in rows["exact-equality"]
    assert " identities " in rows["exact-equality"]
    assert rows["exact-equality"].split()[-1] == "any"
    assert " estimated " in rows["next-token-identity"]
    assert re.search(r"TV 0\.0\d\d \(joint\)$", rows["next-token-identity"].rstrip())
    assert " decided " in rows["support"]
    assert "one wrong reply" in rows["support"]


def test_what_is_not_claimed_says_what_it_needs():
    (said,) = [line for line in printed(run(Rule())).splitlines() if line.startswith("not asked: ")]
    assert "complete-output (needs generate)" in said
    assert "exact-equality" not in said  # no one else can be asked for the proofs of the reference's code


def test_seed_versions_and_texts_are_printed():
    text = " ".join(printed(replace(HELD, seed=77)).split())
    assert "tested, budget smoke, seed 77 (refspec " in text
    for name, digest in HELD.texts.items():
        assert f"text {name}, SHA-256 {digest}" in text


# The line that reruns a finding.


@pytest.fixture
def refspec(monkeypatch, capsys):
    def run_command(*arguments):
        monkeypatch.setattr(sys, "argv", ["refspec", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return left.value.code, capsys.readouterr().out

    return run_command


def rerun_lines(text):
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith("  rerun ")]


TEXT = "The fox saw the grapes. The grapes hung high; the fox leapt, and missed.\n" * 20


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ("AlwaysAccept", ["--pair", "exact-zeros"]),
        ("OneRowLate", ["--pair", "context", "--seed", "5"]),
        ("ResidualByAbsoluteValue", ["--pair", "g3", "--alpha", "1.23456789e-05"]),
        ("AlwaysAccept", ["--pair", "g3", "--text", "fable.txt"]),
        ("AlwaysAccept", ["--pair", "g3", "--text", "my fable.txt"]),
    ],
)
def test_the_line_that_reruns_a_finding_selects_it(refspec, tmp_path, monkeypatch, fault, options):
    monkeypatch.chdir(tmp_path)
    for name in ("fable.txt", "my fable.txt"):
        (tmp_path / name).write_text(TEXT, encoding="utf-8")
    code, text = refspec("check", f"verification.faults.chain:{fault}", "--budget", "smoke", *options)
    lines = rerun_lines(text)
    assert code == 1
    assert lines
    for line in lines:
        name, *arguments = shlex.split(line)
        assert name == "refspec"
        again, _ = refspec(*arguments, "--json", "again.json")
        document = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
        assert again == 1
        assert {finding["property"] for finding in document["findings"]} == {
            arguments[arguments.index("--property") + 1]
        }
        assert {finding["pair"] for finding in document["findings"]} == {arguments[arguments.index("--pair") + 1]}
        asked = dict(zip(options[::2], options[1::2], strict=True))
        assert document["seed"] == int(asked.get("--seed", 0))
        assert document["false_alarm"] == float(asked.get("--alpha", 1e-6))

"""``refspec plan``: the numbers of ``verification.statistics.planning``, for the tree of a pair, and a pilot."""

import json

import pytest

from toy_models import get_pair
from verification.adapters.python import load
from verification.commands.plan import pilot
from verification.scenario import Scenario
from verification.statistics.planning import plan_samples, rarest_detectable, smallest_detectable


@pytest.fixture
def plan(refspec):
    def run(words):
        code, printed, complained = refspec("plan", *words.split(), "--json", "-")
        assert (code, complained) == (0, "")
        return json.loads(printed)

    return run


@pytest.mark.parametrize("operation", ["verify", "draft_and_verify", "generate"])
def test_the_samples_of_a_full_tree(plan, operation):
    found = plan(f"context --operation {operation} --lookahead 3 --bias 0.01 --alpha 1e-4 --findings 10")
    assert found["degrees"] == 4**4 - 1
    assert found["samples"] == plan_samples(255, 0.01, 1e-5)
    assert (found["schema"], found["joint"], found["power"]) == ("refspec.plan/1", True, 0.99)
    assert found["seconds"] == pytest.approx(found["samples"] * found["seconds_per_call"])
    assert found["seconds_per_call"] > 0


def test_the_bias_that_samples_show(plan):
    found = plan("eight --lookahead 1 --samples 5000")
    assert found["bias"] == smallest_detectable(63, 5000, 1e-6)


def test_the_bias_of_the_samples_that_a_bias_needs_is_that_bias(plan):
    needed = plan("g3 --bias 0.03")["samples"]
    assert plan(f"g3 --samples {needed}")["bias"] == pytest.approx(0.03, rel=1e-3)


def test_a_certain_target_needs_one_wrong_reply(plan):
    found = plan("one-hot-target --bias 0.01")
    assert found["degrees"] == 0
    assert rarest_detectable(found["samples"]) <= 0.01 < rarest_detectable(found["samples"] - 1)
    assert plan("one-hot-target --bias 1")["samples"] == 1


@pytest.mark.parametrize(("name", "lookahead", "joint"), [("g3", 4, True), ("context", 4, True), ("eight", 2, True)])
def test_the_lookahead_is_the_longest_that_is_counted_in_full(plan, name, lookahead, joint):
    found = plan(name)
    assert (found["lookahead"], found["joint"]) == (lookahead, joint)


def test_a_wide_pair_is_counted_by_state(plan):
    found = plan("random-logits-wide --lookahead 1")
    assert not found["joint"]
    assert found["degrees"] == 199 + 200 * 199


def test_the_pilot_runs_the_adapter(plan, module):
    module(
        "my_adapter",
        """
        from verification.faults.rule import Rule
        calls = []
        class Adapter(Rule):
            def verify(self, **asked):
                calls.append(len(asked["draft_tokens"]))
                return super().verify(**asked)
        """,
    )
    assert plan("g3 --adapter my_adapter:Adapter")["implementation"] == "my_adapter:Adapter"
    import my_adapter

    assert my_adapter.calls[:3] == [1, 4, 16]


def test_a_pilot_ends(monkeypatch):
    monkeypatch.setattr("verification.commands.plan.LARGEST_BATCH", 7)
    assert 0 < pilot(load(), "verify", Scenario(get_pair("g3").floats, 2)) < 60


def test_the_table(refspec):
    code, printed, complained = refspec("plan", "context", "--lookahead", 1, "--bias", 0.05)
    assert (code, complained) == (0, "")
    said = dict(line.split(maxsplit=1) for line in printed.splitlines())
    assert said["pair"] == "context, verify, K = 1"
    assert said["law"] == "next-token-identity, 15 degrees of freedom"
    assert said["samples"] == f"{plan_samples(15, 0.05, 1e-6):,} calls"
    assert "refspec on this machine" in said["time"]

"""A run that ends early: what is known is kept, what is missing is inconclusive, nobody waits for the rest.

No verdict here rests on chance: the fault is one that a single reply shows.
"""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from verification.adapters.loopback import Reference
from verification.adapters.protocol import Implementation
from verification.finding import BROKEN, HOLDS, INCONCLUSIVE
from verification.report.terminal import closing
from verification.runner import BUDGETS, INTERRUPTED, WORKER_DIED, Selection, check

SMALL = Selection(("block-length", "support"), ("context", "g3"))
REFSPEC = [sys.executable, "-c", "from verification.cli import main; main()"]


class Interrupted(Reference):
    """Ctrl-C comes at some call of ``verify``; before it every reply may be changed."""

    def __init__(self, calls, change=lambda tokens: tokens):
        super().__init__()
        self.left = calls
        self.change = change

    def verify(self, **asked):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.change(super().verify(**asked))


def run(adapter, executor=None):
    return check(Implementation(adapter, "tested"), budget=BUDGETS["smoke"], selection=SMALL, executor=executor)


def test_what_is_known_is_kept_and_what_is_missing_is_inconclusive():
    whole, part = run(Reference()), run(Interrupted(3))
    assert part.interrupted
    assert not whole.interrupted
    assert part.verdict == INCONCLUSIVE
    assert len(part.findings) == len(whole.findings)
    known = [finding for finding in part.findings if finding.message != INTERRUPTED]
    assert 0 < len(known) < len(whole.findings)
    assert {finding.status for finding in part.findings if finding not in known} == {INCONCLUSIVE}
    assert all(finding in whole.findings for finding in known)
    assert 0 < part.calls < whole.calls
    assert closing(part).startswith(f"Interrupted after {part.calls:,} calls, nothing broken so far; ")


def test_what_was_broken_before_the_interrupt_stays_broken():
    part = run(Interrupted(3, change=lambda tokens: tokens + 9))
    assert (part.interrupted, part.verdict) == (True, BROKEN)
    assert closing(part).startswith("Broken: ")


def test_an_interrupt_before_anything_is_known():
    part = run(Interrupted(0))
    assert all(f.message == INTERRUPTED for f in part.findings if f.operation == "verify")


class Dying(ThreadPoolExecutor):
    """An executor whose workers die after some cells."""

    def __init__(self, cells):
        super().__init__(1)
        self.left = cells

    def submit(self, work, /, *asked):
        self.left -= 1
        if self.left >= 0:
            return super().submit(work, *asked)
        dead = Future()
        dead.set_exception(BrokenProcessPool("a process in the process pool was terminated abruptly"))
        return dead


def test_a_worker_that_dies_is_told_and_is_no_interrupt():
    """As when the system ends a process that takes too much memory."""
    with Dying(0) as executor:
        result = run(Reference(), executor)
    assert (result.interrupted, result.verdict) == (False, INCONCLUSIVE)
    assert {finding.message for finding in result.findings} == {WORKER_DIED}
    assert WORKER_DIED in closing(result)


def test_cells_that_are_done_when_a_worker_dies_are_kept():
    with Dying(10**6) as executor:
        assert run(Reference(), executor).verdict == HOLDS


# As a person does it.

SLOW = """
    import time
    from pathlib import Path
    from verification.faults.rule import Rule

    class Slow(Rule):
        calls = 0
        def verify(self, **asked):
            self.calls += 1
            if self.calls == 8:
                Path("begun").touch()
                time.sleep(300)
            return super().verify(**asked)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs process groups and their signals")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("whom", ["group", "process"])
def test_control_c(module, here, jobs, whom):
    """From a terminal the workers get the signal too; from a service the process alone gets it."""
    module("slow_sampler", SLOW)
    arguments = ["check", "slow_sampler:Slow", "--budget", "smoke", "--jobs", str(jobs), "--json", "out.json"]
    returncode, printed, complained = interrupted_once_begun(arguments, here, os.killpg if whom == "group" else os.kill)
    assert (returncode, complained) == (2, "")
    assert "Interrupted after " in printed.splitlines()[-1]
    found = json.loads((here / "out.json").read_text(encoding="utf-8"))
    assert (found["verdict"], found["interrupted"]) == (INCONCLUSIVE, True)
    assert {HOLDS, INCONCLUSIVE} <= {finding["status"] for finding in found["findings"]}


SLOW_IMPORT = """
    import time
    from pathlib import Path

    Path("begun").touch()
    time.sleep(300)
"""
SLOW_START = """
    import os, time
    from pathlib import Path

    if "BEGUN" in os.environ:  # in a process that was started by the first
        Path("begun").touch()
        time.sleep(2)
    os.environ["BEGUN"] = "yes"
"""


@pytest.mark.skipif(os.name != "posix", reason="needs process groups and their signals")
@pytest.mark.parametrize(
    ("name", "code", "complaint"),
    [
        ("scipy", SLOW_IMPORT, "refspec: interrupted\n"),  # while the first process imports what it needs
        ("sitecustomize", SLOW_START, ""),  # while the workers begin
    ],
)
def test_control_c_before_the_work_has_begun(module, here, monkeypatch, name, code, complaint):
    module(name, code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(here), *sys.path]))
    arguments = ["check", "--budget", "smoke", "--jobs", "2", "--json", "out.json"]
    returncode, printed, complained = interrupted_once_begun(arguments, here, os.killpg)
    assert (returncode, complained) == (2, complaint)
    if not complaint:
        assert "Interrupted after " in printed.splitlines()[-1]
        assert json.loads((here / "out.json").read_text(encoding="utf-8"))["interrupted"]


def test_what_is_done_when_the_interrupt_comes_is_kept():
    """All cells are done before the second is told of."""
    told = []

    def progress(done, what):
        told.append(what)
        if len(told) == 2:
            executor.shutdown(wait=True)
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as executor:
        adapter = Implementation(Reference(), "tested")
        result = check(adapter, budget=BUDGETS["smoke"], selection=SMALL, executor=executor, progress=progress)
    assert (result.interrupted, result.verdict) == (True, HOLDS)


def interrupted_once_begun(arguments, here, send):
    """Run the command, send the signal a second after the file ``begun`` is there; no process may be left behind."""
    with subprocess.Popen(  # noqa: S603
        REFSPEC + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not (here / "begun").exists():
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1)
        send(process.pid, signal.SIGINT)
        printed, complained = process.communicate(timeout=60)
    assert gone(process.pid)
    return process.returncode, printed, complained


def gone(group):
    """Whether no process is left in a group after a while; the last one ends when it sees that its parent did."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False

"""A block and its counters."""

import dataclasses

import pytest

from refspec.block import Block, Counters, count


def test_counters_of_a_block():
    block = Block((4, 2, 7), drafted=5, verified=3, accepted=2)
    assert block.counters == Counters(drafted=5, verified=3, accepted=2, emitted=3, target_calls=1)


def test_counters_add_up_name_by_name():
    first = Counters(drafted=1, verified=2, accepted=3, emitted=4, target_calls=5)
    second = Counters(drafted=10, verified=20, accepted=30, emitted=40, target_calls=50)
    assert first + second == Counters(drafted=11, verified=22, accepted=33, emitted=44, target_calls=55)


def test_count_sums_over_loops():
    blocks = [Block((1, 2), drafted=3, verified=2, accepted=1), Block((5,), drafted=0, verified=0, accepted=0)]
    assert count(iter(blocks)) == Counters(drafted=3, verified=2, accepted=1, emitted=3, target_calls=2)


def test_count_of_no_loops_is_zero():
    assert count(()) == Counters(0, 0, 0, 0, 0)


@pytest.mark.parametrize("value", [Block((1,), drafted=0, verified=0, accepted=0), Counters()])
def test_blocks_and_counters_do_not_change(value):
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.accepted = 1
    assert hash(value) == hash(dataclasses.replace(value))

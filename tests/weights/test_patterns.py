"""Patterns of keys match the keys that they format."""

from hypothesis import given
from hypothesis import strategies as st

from vit_plugin.weights.patterns import Pattern

numbers = st.integers(0, 99)


@given(i=numbers, j=numbers)
def test_pattern_reads_what_it_writes(i, j):
    pattern = Pattern('block{i+1}/unit{j+1}/(new|old){k}/kernel')
    indices = (('i', i), ('j', j), ('k', 3))
    assert pattern.format(indices) == f'block{i + 1}/unit{j + 1}/new3/kernel'
    assert pattern.match(pattern.format(indices)) == indices
    assert pattern.match(f'block{i + 1}/unit{j + 1}/old3/kernel') == indices
    assert pattern.match(f'block{i + 1}/unit{j + 1}/other3/kernel') is None


def test_number_below_the_offset_does_not_match():
    assert Pattern('block{i+1}').match('block0') is None


def test_dots_match_only_dots():
    assert Pattern('a.{i}.b').match('a.1xb') is None
    assert Pattern('a.{rest}').match('a.b.c') == (('rest', 'b.c'),)

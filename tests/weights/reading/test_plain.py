"""Split a state into tensors and JSON, and join it again."""

import json
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.logging import HistoryBuffer
from rejection import rejects

from vit_plugin.weights.reading.plain import join, split_tensors, tensor_names, to_text

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(
            st.text(max_size=3) | st.integers() | st.tuples(st.integers()) | st.just('$'),
            inner,
            max_size=3,
        )
    ),
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=3))
def test_plain_values_survive_a_round_trip(state):
    tensors, plain = split_tensors(state)
    assert not tensors
    # repr, because NaN is not equal to itself.
    assert repr(join(json.loads(to_text(plain)), tensors)) == repr(state)


def test_tensors_arrays_and_histories_survive_a_round_trip():
    buffer = HistoryBuffer([1.0, 2.0], [1, 3], max_length=7)
    state = {
        'a': {'b.c': torch.ones(2), 3: (torch.tensor(5), np.arange(3), np.float32(0.5))},
        'a.b': {'c': torch.zeros(1)},
        'hub': OrderedDict(loss=buffer),
        'empty': np.array([]),
    }
    tensors, plain = split_tensors(state)
    assert len(tensors) == 7  # two have the path 'a.b.c', and get different names
    joined = join(json.loads(to_text(plain)), tensors)
    assert joined['a'][3][2] == 0.5
    assert torch.equal(joined['a']['b.c'], torch.ones(2))
    assert torch.equal(joined['a.b']['c'], torch.zeros(1))
    np.testing.assert_array_equal(joined['a'][3][1], np.arange(3))
    np.testing.assert_array_equal(joined['hub']['loss'].data, buffer.data)
    assert joined['hub']['loss'].max_length == 7
    assert {names[-1]: names[:-1] for names in tensor_names(plain)}['a.b.c'] == ('a', 'b.c')


@pytest.mark.parametrize(
    'value',
    [
        *(object(), {1, 2}, b'bytes', np.array(['text']), 1j, print),
        *(np.longdouble(1), np.zeros(1, np.longdouble)),  # Python and torch have no such numbers
    ],
)
def test_unsupported_values_raise(value):
    with rejects(r"hub\.mine is of type .*format='file'"):
        split_tensors({'hub': {'mine': value}})


def test_unknown_types_raise():
    with pytest.raises(ValueError, match='unknown kind'):
        join({'$': 'call', 'is': 'os.system'}, {})

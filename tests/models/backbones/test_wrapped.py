"""What backbones of other libraries share: frozen parts, and the indices of outputs."""

import pytest
from rejection import rejects
from torch import nn

from vit_plugin.models.backbones.wrapped import WrappedBackbone


class Wrapped(WrappedBackbone):
    def __init__(self) -> None:
        super().__init__(None)
        self.first, self.second, self.frozen = nn.Dropout(), nn.Dropout(), ('first',)


def test_frozen_parts_stay_in_eval_mode():
    model = Wrapped().train()
    assert (model.training, model.first.training, model.second.training) == (True, False, True)


@pytest.mark.parametrize(('out_indices', 'expected'), [(-1, {3}), ((0, -1, 3), {0, 3})])
def test_out_indices_are_counted_from_0(out_indices, expected):
    assert Wrapped().check_out_indices(out_indices, 4, 'x has 4 stages') == expected


@pytest.mark.parametrize('out_indices', [4, (0, -5)])
def test_out_indices_out_of_range_raise(out_indices):
    with rejects(r'Wrapped: out_indices=.* is out of range: x has 4 stages, -4 to 3\.'):
        Wrapped().check_out_indices(out_indices, 4, 'x has 4 stages')

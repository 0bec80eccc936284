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


@pytest.mark.parametrize(('given', 'wanted'), [(-1, {3}), ((0, -1, 3), {0, 3})])
def test_outputs_are_counted_from_0(given, wanted):
    assert Wrapped().check_out_indices(given, 4, 'x has 4 stages') == wanted


@pytest.mark.parametrize('given', [4, (0, -5)])
def test_outputs_that_are_not_there_are_refused(given):
    with rejects(r'Wrapped: out_indices=.* is out of range: x has 4 stages, -4 to 3\.'):
        Wrapped().check_out_indices(given, 4, 'x has 4 stages')

"""Traits of a model that its tensors show."""

import pytest
import torch

from vit_plugin.weights.traits import is_gated, is_rowless, num_registers

MLP = {f'blocks.0.mlp.fc{i}.weight': torch.zeros(shape) for i, shape in ((1, (8, 4)), (2, (4, 4)))}
TOKENS = dict(
    cls_token=torch.zeros(1, 1, 4), pos_embed=torch.zeros(1, 9, 4), reg_token=torch.zeros(1, 3, 4)
)


def test_traits_are_shown_by_shapes():
    assert is_gated(MLP)
    assert is_rowless(TOKENS)
    assert num_registers(TOKENS) == 3


@pytest.mark.parametrize('damaged', [torch.zeros(()), torch.zeros(4)])
def test_damaged_and_missing_tensors_show_nothing(damaged):
    for name in MLP:
        assert not is_gated({**MLP, name: damaged})
    assert not is_rowless({**TOKENS, 'pos_embed': damaged})
    assert num_registers(dict(reg_token=damaged)) == num_registers({}) == 0

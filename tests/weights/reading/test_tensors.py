"""The tensors in what training scripts save, and values that are no usable tensors."""

import pytest
import torch
from rejection import rejects

from vit_plugin.weights.reading.tensors import find_tensors

STATE = {'weight': torch.zeros(2), 'bias': torch.ones(2)}
OTHER = {name: value + 100 for name, value in STATE.items()}


@pytest.mark.parametrize(
    ('content', 'noted'),
    [
        (dict(ema=dict(module=STATE)), False),
        (dict(model=OTHER, ema=dict(module=STATE, updates=3)), True),
        (dict(state_dict=OTHER, state_dict_ema=STATE), True),
        (dict(model=OTHER, model_ema=STATE, epoch=3), True),
        (dict(state_dict=STATE, **{'pytorch-lightning_version': '2.5.0'}), False),
        (dict(ema={}, model=STATE), False),
    ],
)
def test_ema_weights_are_preferred_with_a_note(content, noted, monkeypatch):
    printed = []
    monkeypatch.setattr(
        'vit_plugin.weights.reading.tensors.print_log', lambda text, *_: printed.append(text)
    )
    assert find_tensors(content)[0] == STATE
    assert bool(printed) == noted
    assert all('the EMA weights in' in text for text in printed)


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ({1: torch.zeros(2)}, '1 is the name of a tensor, and not a string'),
        ({'a': torch.zeros(2).to_sparse()}, "'a' is sparse, quantized, nested or complex"),
        ({'a': torch.zeros(2, dtype=torch.complex64)}, "'a' is sparse, quantized, nested or com"),
        ({'a': torch.zeros(2, device='meta')}, r"'a' is of the shape \(2,\) without content"),
    ],
)
def test_values_that_are_no_usable_tensors_raise(content, message):
    with rejects(f'The checkpoint cannot be used: {message}'):
        find_tensors(content)

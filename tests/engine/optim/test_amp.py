import pytest
import torch
from torch import nn

from vit_plugin.engine import AmpOptimWrapper
from vit_plugin.errors import ConfigError


def wrap(model: nn.Module, **kwargs) -> AmpOptimWrapper:
    return AmpOptimWrapper(optimizer=torch.optim.SGD(model.parameters(), lr=0.1), **kwargs)


def test_bfloat16_on_a_cpu_trains_without_loss_scaling():
    model = nn.Linear(4, 4)
    before = model.weight.clone()
    wrapper = wrap(model, clip_grad=dict(max_norm=1.))
    with wrapper.optim_context(model):
        output = model(torch.randn(2, 4))
    assert output.dtype == torch.bfloat16
    wrapper.update_params(output.float().square().sum())
    assert not torch.equal(model.weight, before)
    assert not wrapper.loss_scaler.is_enabled()


def test_state_survives():
    wrapper = wrap(nn.Linear(4, 4))
    other = wrap(nn.Linear(4, 4))
    other.load_state_dict(wrapper.state_dict())
    assert other.optimizer.state_dict() == wrapper.optimizer.state_dict()


@pytest.mark.parametrize(('dtype', 'words'), [
    ('float16', "is not possible on the device 'cpu'; choose bfloat16"),
    ('float8', "must be one of 'bfloat16', 'float16'")])
def test_what_a_cpu_cannot(dtype, words):
    with pytest.raises(ConfigError, match=f"dtype='{dtype}' {words}"):
        wrap(nn.Linear(4, 4), dtype=dtype)

"""Products in float8 through torchao, emulated on a CPU."""

import pytest
import torch
import torch.nn.functional as F
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects
from torch import nn

from benchmarks.exactness import train
from benchmarks.tiny_run import MODEL, differences, final_checkpoint, tiny_cfg
from vit_plugin.engine.float8 import Float8
from vit_plugin.engine.model_settings import model_setting

pytest.importorskip('torchao.float8')
pytestmark = pytest.mark.filterwarnings('ignore')
EMULATED = dict(min_width=16, emulate=True)


def classifier() -> nn.Module:
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return MODELS.build(MODEL)


def rounded(x: torch.Tensor) -> torch.Tensor:
    """The values that float8 (4 bits of exponent, 3 of mantissa) has of a tensor, scaled to its
    largest value.
    """
    scale = torch.finfo(torch.float8_e4m3fn).max / x.abs().max().double()
    return (x * scale.float()).to(torch.float8_e4m3fn).float() / scale.float()


def test_the_layers_of_the_blocks_multiply_rounded_factors():
    model = classifier()
    names = list(model.state_dict())
    plain = {
        name: layer
        for name, layer in model.backbone.blocks.named_modules()
        if type(layer) is nn.Linear
    }
    assert Float8(**EMULATED).convert(model) == len(plain) > 0
    assert list(model.state_dict()) == names
    assert type(model.head.layers.head) is nn.Linear
    layer = model.backbone.blocks[0].mlp.fc1
    x = torch.randn(2, 5, layer.in_features)
    torch.testing.assert_close(
        layer(x), F.linear(rounded(x), rounded(layer.weight), layer.bias), rtol=1e-5, atol=1e-6
    )
    assert not torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_narrow_layers_stay():
    with rejects('has no vit_plugin.VisionTransformer with layers of 1024 channels'):
        Float8(emulate=True).convert(classifier())


@pytest.mark.skipif(torch.cuda.is_available(), reason='tells what a CPU cannot do')
def test_a_cpu_has_to_emulate():
    with rejects('capability 8.9 or higher; leave float8 out, or try it slowly'):
        Float8(min_width=16).convert(classifier())


def test_bad_settings():
    with rejects(r'float8=True must be a dict, such as float8=dict\(\)'):
        model_setting(dict(float8=True), 'float8')
    with rejects('leave one of them out'):
        model_setting(dict(float8={}, lora={}), 'float8')
    with rejects("recipe='blocks' must be 'tensorwise' or 'rowwise'"):
        Float8(recipe='blocks')


@pytest.mark.nightly
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path):
    train(tiny_cfg(tmp_path / 'plain'))
    train(tiny_cfg(tmp_path / 'float8', float8=EMULATED))
    train(tiny_cfg(tmp_path / 'resumed', float8=EMULATED, resume=True), 6)
    train(tiny_cfg(tmp_path / 'resumed', float8=EMULATED, resume=True))
    plain, float8, resumed = (
        final_checkpoint(tmp_path / name) for name in ('plain', 'float8', 'resumed')
    )
    assert differences(float8, resumed) == []
    assert 'state_dict.backbone.blocks.0.mlp.fc1.weight' in ' '.join(differences(plain, float8))

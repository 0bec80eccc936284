"""Models on fake CUDA tensors, which raise if a constant stays on the CPU or a value is read.

Fake tensors have a shape, a dtype and a device, but no values. They show without a GPU that a
forward runs on one, and that it forces no sync.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._pytree import tree_leaves
from wrong_values import RIGHT

from vit_plugin.registry import MODELS

# RIGHT has valid arguments for every registered class.
BACKBONES = [
    name
    for name in RIGHT
    if name in ('EoMT', 'PMT', 'WindowedViT')
    or name.startswith(('VisionTransformer', 'MM', 'TimmBackbone', 'ViTAdapter'))
]
STEMS = [name for name in RIGHT if name.endswith('Embed')]


def on_fake_cuda(model: nn.Module) -> tuple[nn.Module, FakeTensorMode]:
    """Make a module's tensors fake tensors on a GPU.

    Returns:
        The module, and the mode of its tensors, which rejects real tensors.
    """
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
    # Fake parameters cannot be written into real ones.
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with fake:
            model = model.to('cuda')
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(overwrites)
    fake.allow_non_fake_inputs = False
    return model, fake


def build(name: str) -> nn.Module:
    # Keys of RIGHT are names of classes, some with a note after a space.
    return MODELS.build(dict(RIGHT[name], type=f'vit_plugin.{name.partition(" ")[0]}'))


def assert_on_cuda(outputs: Any) -> None:
    tensors = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, Tensor)]
    assert tensors
    assert {tensor.device.type for tensor in tensors} == {'cuda'}


@pytest.fixture
def autocast(monkeypatch) -> Iterator[None]:
    """Autocast for CUDA, which :class:`torch.autocast` disables on a machine without a GPU."""
    before = torch.get_autocast_dtype('cuda')
    torch.set_autocast_enabled('cuda', True)
    torch.set_autocast_dtype('cuda', torch.bfloat16)
    yield
    torch.set_autocast_enabled('cuda', False)
    torch.set_autocast_dtype('cuda', before)


@pytest.mark.nightly
@pytest.mark.parametrize('mode', ['train', 'eval'])
@pytest.mark.parametrize('name', [*BACKBONES, *STEMS])
def test_forward_in_float32(name, mode):
    check_forward(name, mode)


@pytest.mark.parametrize('name', [*BACKBONES, *STEMS])
def test_forward_under_autocast(name, autocast):
    check_forward(name, 'train')


def check_forward(name: str, mode: str) -> None:
    model, fake = on_fake_cuda(build(name).train(mode == 'train'))
    with fake:
        size = getattr(model, 'img_size', 64)
        height, width = (size, size) if isinstance(size, int) else size
        out = model(torch.empty(2, 3, height, width, device='cuda'))
    assert_on_cuda(out[0] if name in STEMS else out)  # a stem also returns its grid and maps


TOKENS, MAP = (2, 17, 32), (2, 32, 8, 8)
# Necks and heads -> the shape of their input.
SHAPES = {
    'SimpleFPN': MAP,
    'C2fProjector': MAP,
    'LWDETRHead': MAP,
    'TokenPooling': TOKENS,
    'DINONeck': TOKENS[1:],
    'ViTClsHead': (2, 32),
    'DistilledViTClsHead': TOKENS,
}


@pytest.mark.parametrize('name', [name for name in SHAPES if name in RIGHT])
@pytest.mark.filterwarnings('ignore')
def test_forward_of_necks_and_heads(name):
    model, fake = on_fake_cuda(build(name))
    with fake:
        assert_on_cuda(model((torch.empty(SHAPES[name], device='cuda'),)))


@pytest.mark.filterwarnings('ignore')
def test_a_loss_reads_no_value():
    model, fake = on_fake_cuda(build('ViTClsHead'))
    with fake:
        labels = torch.empty(2, dtype=torch.int64, device='cuda')
        assert_on_cuda(model.loss_module(model((torch.empty(2, 32, device='cuda'),)), labels))


def test_reading_a_value_raises():
    model, fake = on_fake_cuda(nn.Linear(2, 2))
    with fake, pytest.raises(DataDependentOutputException):
        model(torch.empty(2, 2, device='cuda')).sum().item()


def test_a_constant_on_the_cpu_raises():
    constant = torch.ones(2)
    model, fake = on_fake_cuda(nn.Linear(2, 2))
    with fake, pytest.raises(AssertionError, match='convert all Tensors to FakeTensors'):
        model(torch.empty(2, 2, device='cuda')) + constant


@pytest.mark.parametrize('name', BACKBONES)
def test_forward_on_the_meta_device(name):
    with torch.device('meta'):
        model = build(name).eval()
        size = getattr(model, 'img_size', 64)
        height, width = (size, size) if isinstance(size, int) else size
        out = model(torch.empty(2, 3, height, width))
    assert {leaf.device.type for leaf in tree_leaves(out)} == {'meta'}

"""Real-time detectors have the same gradients with compiled blocks and selective recomputing."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import copy

import pytest
import torch
from mmengine.structures import InstanceData
from torch import Tensor, nn

from benchmarks import exported_families
from vit_plugin.engine.compile import compile_blocks

pytestmark = pytest.mark.filterwarnings('ignore')
SIZE = (64, 96)
PROJECTS = dict(DEIMv2='deimv2', ECDet='ecdet')  # the projects of families outside of d_fine


def built(family: str, **backbone) -> nn.Module:
    """A small detector of a family, in training mode."""
    if family in PROJECTS:
        pytest.importorskip(f'vit_plugin.projects.{PROJECTS[family]}')
    changes = dict(model=dict(backbone=backbone)) if backbone else {}
    return exported_families.build(family, exported_families.TestSettings([], model=changes))[
        1
    ].train()


def gradients(model: nn.Module) -> dict[str, Tensor]:
    """The gradients of a step on two images, one of them without objects."""
    from mmdet.structures import DetDataSample

    torch.manual_seed(1)
    images, samples = torch.rand(2, 3, *SIZE), []
    for boxes in ([[8.0, 8.0, 40.0, 40.0], [30.0, 20.0, 90.0, 60.0]], []):
        objects = InstanceData(
            bboxes=torch.tensor(boxes).view(-1, 4), labels=torch.arange(len(boxes))
        )
        meta = dict(img_shape=SIZE, batch_input_shape=SIZE)
        samples.append(DetDataSample(metainfo=meta, gt_instances=objects))
    sum(value for value in model.loss(images, samples).values()).backward()
    return {
        name: parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize('family', ['DEIMv2', 'ECDet'])
def test_selective_recomputing_keeps_gradients(family):
    assert_same(gradients(built(family, with_cp='selective')), gradients(built(family)))


@pytest.mark.nightly
@pytest.mark.parametrize('family', ['RT-DETR', 'D-FINE', 'DEIMv2', 'ECDet'])
def test_compiled_blocks_keep_gradients(family):
    model = built(family)
    original = copy.deepcopy(model)
    names = [*model.state_dict()]
    assert compile_blocks(model, backend='aot_eager') >= 3
    assert_same(gradients(model), gradients(original))
    assert [*model.state_dict()] == names

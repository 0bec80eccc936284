"""The losses of queries in groups equal those of MMDetection, with one GPU sync per step."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from typing import Any

import numpy as np
import pytest
import torch
from mmdet.models.dense_heads import DETRHead
from mmdet.structures import DetDataSample
from mmengine.structures import InstanceData
from rejection import rejects
from torch.utils._python_dispatch import TorchDispatchMode

from vit_plugin.projects.detr_family.grouped_detr_head import GroupedDETRHead
from vit_plugin.projects.detr_family.matching import match

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
LAYERS, GROUPS, QUERIES, CLASSES = 2, 3, 4, 5
SIZES = [(40, 64), (64, 48), (64, 64)]  # height and width of the images
# Objects in the images. The last image has more objects than a group has queries.
NUMBERS = [2, 0, 6]
COSTS = [
    dict(type='mmdet.FocalLossCost', weight=2.0),
    dict(type='mmdet.BBoxL1Cost', weight=5.0, box_format='xywh'),
    dict(type='mmdet.IoUCost', iou_mode='giou', weight=2.0),
]
ASSIGNER_OF_CLASSES = dict(
    type='mmdet.HungarianAssigner', match_costs=[dict(type='mmdet.ClassificationCost'), *COSTS[1:]]
)
FOCAL = dict(type='mmdet.FocalLoss', use_sigmoid=True)


class FixedOutputs(GroupedDETRHead):
    """A head whose ``forward`` returns given outputs: all entries of its input after the first."""

    def forward(self, x: Any, sizes: Any, num_groups: int) -> Any:
        assert num_groups == GROUPS
        return x[1:]


def head(classes: int = CLASSES, **kwargs: Any) -> FixedOutputs:
    """A head for fixed outputs; keyword arguments replace its losses and assigner."""
    kwargs = (
        dict(
            loss_cls=FOCAL,
            loss_bbox=dict(type='mmdet.L1Loss', loss_weight=5.0),
            loss_iou=dict(type='mmdet.GIoULoss', loss_weight=2.0),
            train_cfg=dict(assigner=dict(type='mmdet.HungarianAssigner', match_costs=COSTS)),
        )
        | kwargs
    )
    return FixedOutputs(GROUPS, classes, 256, **kwargs)


@pytest.fixture
def outputs() -> list[torch.Tensor]:
    """Random logits, boxes and features of the decoder layers and the proposals."""
    torch.manual_seed(0)
    shape = (len(SIZES), GROUPS * QUERIES)
    logits = [torch.randn(*layers, *shape, CLASSES) for layers in ((LAYERS,), ())]
    boxes = [torch.rand(*layers, *shape, 4) * 0.5 + 0.1 for layers in ((LAYERS,), ())]
    features = [torch.zeros(LAYERS, *shape, 1), torch.zeros(*shape, 1)]
    # Tensors of the decoder layers come before those of the proposals.
    tensors = logits[0], boxes[0], logits[1], boxes[1], *features
    return [tensor.double().requires_grad_() for tensor in tensors]


def samples(numbers: list[int]) -> list[DetDataSample]:
    """One image with random objects for each of the counts."""
    images = []
    for (height, width), number in zip(SIZES, numbers, strict=True):
        low, high = torch.rand(2, number, 2, dtype=torch.float64)
        ends = torch.tensor([width, height] * 2)
        meta = dict(img_shape=(height, width), batch_input_shape=(64, 64))
        bboxes = torch.cat((low * 0.5, low * 0.5 + 0.1 + high * 0.4), 1) * ends
        objects = InstanceData(bboxes=bboxes, labels=torch.arange(number) % CLASSES)
        images.append(DetDataSample(metainfo=meta, gt_instances=objects))
    return images


def assert_equal_to_mmdetection(ours: FixedOutputs, outputs: list, images: list) -> None:
    """Compare losses and gradients.

    MMDetection has no groups, so it gets each group of an image as an image of its own.
    """
    our_losses = ours.loss([torch.zeros(1), *outputs], images)
    logits, boxes, *proposals = (
        part.unflatten(2, (GROUPS, -1)).flatten(1, 2)
        for part in (*outputs[:2], *(part[None] for part in outputs[2:4]))
    )
    repeated = [sample for sample in images for _ in range(GROUPS)]
    objects = [sample.gt_instances for sample in repeated]
    metas = [sample.metainfo for sample in repeated]
    theirs = DETRHead.loss_by_feat(ours, logits, boxes, objects, metas)
    first = DETRHead.loss_by_feat(ours, *proposals, objects, metas)
    their_losses = theirs | {f'enc_{name}': value for name, value in first.items()}
    assert {*our_losses} == {*their_losses}
    for name, value in their_losses.items():
        torch.testing.assert_close(our_losses[name], value.double(), rtol=1e-6, atol=0)
    gradients = [
        torch.autograd.grad(sum(losses.values()), outputs[:4])
        for losses in (our_losses, their_losses)
    ]
    for actual, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize('loss', [FOCAL, dict(type='mmdet.QualityFocalLoss', use_sigmoid=True)])
@pytest.mark.parametrize('numbers', [NUMBERS, [0, 0, 0]])
def test_losses_and_gradients_equal_those_of_mmdetection(outputs, loss, numbers):
    assert_equal_to_mmdetection(head(loss_cls=loss).double(), outputs, samples(numbers))


def test_fields_and_metainfo_of_images_may_differ(outputs):
    from mmdet.structures.mask import BitmapMasks

    images, ours = samples(NUMBERS), head().double()
    expected = ours.loss([torch.zeros(1), *outputs], images)
    for sample, side in zip(images, (40, 48, 64), strict=True):
        number = len(sample.gt_instances)
        # Masks of different sizes and fields of one image cannot be concatenated over the batch.
        sample.gt_instances.masks = BitmapMasks(np.zeros((number, side, side)), side, side)
    images[0].set_metainfo(dict(flip=True))
    images[2].gt_instances.difficult = torch.zeros(6)
    assert ours.loss([torch.zeros(1), *outputs], images) == expected


def test_softmax_loss_is_averaged_with_background_weight(outputs):
    """As in MMDetection, queries without an object count by the weight of their class."""
    weights = [1.0] * (CLASSES - 1) + [0.1]
    loss = dict(type='mmdet.CrossEntropyLoss', class_weight=weights)
    ours = head(loss_cls=loss, train_cfg=dict(assigner=ASSIGNER_OF_CLASSES), classes=CLASSES - 1)
    ours.bg_cls_weight = 0.1
    assert_equal_to_mmdetection(ours.double(), outputs, samples(NUMBERS))


def test_a_step_synchronizes_once(outputs, monkeypatch):
    """An operator that reads a value of the device makes the CPU wait for it."""
    waits = []

    class Recorded(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if func.overloadpacket in (
                torch.ops.aten._local_scalar_dense,
                torch.ops.aten.nonzero,
                torch.ops.aten.masked_select,
            ):
                waits.append(func)
            return func(*args, **kwargs or {})

    def one_hot(labels: torch.Tensor, num_classes: int) -> torch.Tensor:
        """Does not read the labels, as torch does not on a GPU."""
        return (labels[..., None] == torch.arange(num_classes)).long()

    monkeypatch.setattr(torch.nn.functional, 'one_hot', one_hot)
    copy = torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, 'cpu', lambda x: waits.append('cpu') or copy(x))
    ours, images = head(), samples(NUMBERS)
    with Recorded():
        ours.loss([torch.zeros(1), *outputs], images)
    assert waits == ['cpu']


def test_groups_are_matched_separately():
    """An image's only object is matched with the cheapest query of each of two groups."""
    cost = torch.ones(2 * 3, 1)
    cost[[0, 4]] = 0
    (pairs,) = match([[cost, torch.zeros(6, 0), cost]], groups=2)  # the second image has no object
    assert pairs.queries.tolist() == [0, 4, 12, 16]
    assert pairs.objects.tolist() == [0, 0, 1, 1]
    assert pairs.numbers == [2, 0, 2]


def test_other_assigners_raise():
    with rejects('train_cfg.assigner must be a HungarianAssigner, .* not a MaxIoUAssigner'):
        head(
            train_cfg=dict(
                assigner=dict(type='mmdet.MaxIoUAssigner', pos_iou_thr=0.5, neg_iou_thr=0.4)
            )
        )

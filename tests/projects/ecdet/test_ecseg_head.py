"""ECSeg's head learns masks in all layers and for noised objects; fewer blocks may predict.

``benchmarks/fine_detectors.py`` compares outputs and losses with the authors' own code.
"""

from gpu_waits import Waits
from model_states import assert_all_learn
from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import numpy as np
import pytest
import torch
from mmengine.structures import InstanceData

pytest.importorskip('vit_plugin.projects.d_fine')  # has the base of the head
from vit_plugin.projects.ecdet.ecseg_head import ECSegHead

pytestmark = pytest.mark.filterwarnings('ignore')
SIDE, DIMS, LAYERS = 64, 16, 3


def head(**options) -> ECSegHead:
    """A small head with random weights."""
    torch.manual_seed(0)
    built = ECSegHead(
        num_classes=3,
        num_queries=8,
        in_channels=[DIMS] * 2,
        embed_dims=DIMS,
        variant='ecdet',
        decoder=dict(num_layers=LAYERS, num_heads=2, num_points=(1, 2), feedforward_channels=16),
        distributions=dict(bins=8, quality_channels=8),
        noise=dict(number=6),
        **options,
    )
    for value in built.parameters():
        if value.requires_grad:
            torch.nn.init.normal_(value, std=0.2)
    return built


def maps(batch: int) -> tuple[torch.Tensor, ...]:
    """Feature maps at strides 8 and 16."""
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(batch, DIMS, side, side, generator=generator) for side in (8, 4))


def samples(*boxes: list[list[float]]) -> list:
    """An image for each list of boxes (left, top, right, bottom), which the objects' masks fill."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    images = []
    for image_boxes in boxes:
        masks = np.zeros((len(image_boxes), SIDE, SIDE), np.uint8)
        for mask, (left, top, right, bottom) in zip(masks, image_boxes, strict=True):
            mask[int(top) : int(bottom), int(left) : int(right)] = 1
        meta = dict(img_shape=(SIDE, SIDE), ori_shape=(SIDE, SIDE), scale_factor=(1.0, 1.0))
        objects = InstanceData(
            bboxes=torch.tensor(image_boxes).reshape(-1, 4),
            labels=torch.arange(len(image_boxes)),
            masks=BitmapMasks(masks, SIDE, SIDE),
        )
        meta['batch_input_shape'] = (SIDE, SIDE)
        images.append(DetDataSample(metainfo=meta, gt_instances=objects))
    return images


def test_masks_of_all_layers_and_noised_objects_are_learned():
    """Losses fall and every parameter learns, although an image has no objects."""
    model, x = head().train(), maps(2)
    data = samples([[8.0, 8.0, 40.0, 40.0], [30.0, 20.0, 60.0, 60.0]], [])
    optimizer, totals = torch.optim.AdamW(model.parameters(), 1e-2), []
    for _ in range(25):
        losses = model.loss(x, data)
        total = sum(value for name, value in losses.items() if name.endswith(('mask', 'dice')))
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        totals.append(total.item())
    layers = {'', 'd0.', 'd1.', 'first_'}
    assert {name.removesuffix('loss_mask') for name in losses if name.endswith('loss_mask')} == (
        layers | {f'dn_{name}' for name in layers}
    )
    assert_all_learn(model)
    assert totals[-1] < 0.9 * totals[0]


def test_batches_without_objects_have_gradients():
    model = head().train()
    sum(model.loss(maps(1), samples([])).values()).backward()
    masks = [value for name, value in model.named_parameters() if name.startswith('masks.')]
    assert all(value.grad is not None for value in masks)


def test_a_step_waits_only_for_its_matching():
    """The copy of all costs is the only operator that needs values of a tensor on the CPU."""
    model, x, data = head().train(), maps(2), samples([[8.0, 8.0, 40.0, 40.0]], [])
    with Waits() as waits:
        model.loss(x, data)
    assert not waits.names


def test_masks_follow_the_queries_of_the_scores():
    """Each predicted mask is that of its query in the last layer, in the order of the scores."""
    model, x = head(), maps(1)
    with torch.no_grad():
        outputs = model.train()(x)
        product = model.masks.product(
            outputs.mask_elements[-1].flatten(2), outputs.mask_queries[-1]
        )
        boxes, scores, labels, masks = model.eval().best(x, None)
    all_scores = outputs.logits[-1].sigmoid().flatten()  # of each query for each of 3 classes
    for score, label, mask in zip(scores[0], labels[0], masks[0], strict=True):
        query, expected_label = divmod(int((all_scores - score).abs().argmin()), 3)
        assert expected_label == label
        torch.testing.assert_close(mask.flatten(), product[0, query], atol=1e-5, rtol=1e-5)
    assert masks.shape == (1, len(boxes[0]), 16, 16)


def test_fewer_blocks_may_predict():
    x = maps(1)
    all_blocks, one_block = (head(predicted_blocks=number).eval() for number in (LAYERS, 1))
    with torch.no_grad():
        (boxes, *_, masks), (other_boxes, *_, other_masks) = (
            model.best(x, None) for model in (all_blocks, one_block)
        )
    assert torch.equal(boxes, other_boxes)
    assert not torch.allclose(masks, other_masks, atol=1e-2)
    with rejects('predicted_blocks=4 must be at most 3, one for each layer of the decoder'):
        head(predicted_blocks=4)


def test_predicted_masks_have_the_size_of_the_file():
    (prediction,) = head().eval().predict(maps(1), samples([]))
    assert prediction.masks.shape == (len(prediction.bboxes), SIDE, SIDE)
    assert prediction.masks.dtype == torch.bool

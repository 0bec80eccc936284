"""ECSeg's head: masks of all layers and of noised objects are learned; one block may predict.

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

pytest.importorskip('vit_plugin.projects.d_fine')  # which has the rest of the head
from vit_plugin.projects.ecdet.ecseg_head import ECSegHead

pytestmark = pytest.mark.filterwarnings('ignore')
SIDE, DIMS, LAYERS = 64, 16, 3


def head(**options) -> ECSegHead:
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
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(batch, DIMS, side, side, generator=generator) for side in (8, 4))


def samples(*boxes: list[list[float]]) -> list:
    """Images with boxes as their masks."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    found = []
    for one in boxes:
        masks = np.zeros((len(one), SIDE, SIDE), np.uint8)
        for mask, (left, top, right, bottom) in zip(masks, one, strict=True):
            mask[int(top) : int(bottom), int(left) : int(right)] = 1
        meta = dict(img_shape=(SIDE, SIDE), ori_shape=(SIDE, SIDE), scale_factor=(1.0, 1.0))
        objects = InstanceData(
            bboxes=torch.tensor(one).reshape(-1, 4),
            labels=torch.arange(len(one)),
            masks=BitmapMasks(masks, SIDE, SIDE),
        )
        meta['batch_input_shape'] = (SIDE, SIDE)
        found.append(DetDataSample(metainfo=meta, gt_instances=objects))
    return found


def test_masks_of_all_layers_and_of_noise_are_learned():
    """Losses fall, and every parameter learns, also with an image without objects."""
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


def test_no_objects_at_all_have_gradients():
    model = head().train()
    sum(model.loss(maps(1), samples([])).values()).backward()
    masks = [value for name, value in model.named_parameters() if name.startswith('masks.')]
    assert all(value.grad is not None for value in masks)


def test_a_step_waits_only_for_its_matching():
    """Nothing but the one copy of all costs needs the values of a tensor."""
    model, x, data = head().train(), maps(2), samples([[8.0, 8.0, 40.0, 40.0]], [])
    with Waits() as counted:
        model.loss(x, data)
    assert not counted.names


def test_a_mask_is_that_of_its_query():
    """Predicted masks are those of the last layer in training, in the order of the scores."""
    model, x = head(), maps(1)
    with torch.no_grad():
        outputs = model.train()(x)
        product = model.masks.product(outputs.places[-1].flatten(2), outputs.rows[-1])
        boxes, scores, labels, masks = model.eval().best(x, None)
    every = outputs.logits[-1].sigmoid().flatten()
    for score, label, mask in zip(scores[0], labels[0], masks[0], strict=True):
        at = int((every - score).abs().argmin())
        assert at % 3 == label
        torch.testing.assert_close(mask.flatten(), product[0, at // 3], atol=1e-5, rtol=1e-5)
    assert masks.shape == (1, len(boxes[0]), 16, 16)


def test_fewer_blocks_may_predict():
    x = maps(1)
    every, one = (head(predicted_blocks=number).eval() for number in (LAYERS, 1))
    with torch.no_grad():
        first, second = (model.best(x, None) for model in (every, one))
    assert torch.equal(first[0], second[0])
    assert not torch.allclose(first[3], second[3], atol=1e-2)
    with rejects('predicted_blocks=4 must be at most 3, one for each layer of the decoder'):
        head(predicted_blocks=4)


def test_what_is_predicted_has_the_size_of_the_file():
    (found,) = head().eval().predict(maps(1), samples([]))
    assert found.masks.shape == (len(found.bboxes), SIDE, SIDE)
    assert found.masks.dtype == torch.bool

"""RF-DETR-Seg in MMDetection: sizes of masks, training and export."""

from model_states import assert_all_learn

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import numpy as np
import pytest
import torch
from mmengine.structures import InstanceData
from published_models import QUERIES, roboflow_file, roboflow_weights
from rejection import rejects
from torch import nn

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.traced_graph import example_inputs, trace
from vit_plugin.inference.load import load

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
SIZE = 64  # image side in pixels of the file that `path` has


@pytest.fixture(scope='module')
def path(tmp_path_factory):
    return roboflow_file(tmp_path_factory.mktemp('seg') / 'seg.pth', masks=True)


def samples(*boxes: list[list[float]], shape: tuple[int, int] = (SIZE, SIZE)) -> list:
    """A sample for each list of boxes, whose objects fill their boxes."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    images = []
    for image_boxes in boxes:
        masks = np.zeros((len(image_boxes), SIZE, SIZE), np.uint8)
        for mask, (left, top, right, bottom) in zip(masks, image_boxes, strict=True):
            mask[int(top) : int(bottom), int(left) : int(right)] = 1
        meta = dict(
            img_shape=shape,
            ori_shape=shape,
            batch_input_shape=(SIZE, SIZE),
            scale_factor=(1.0, 1.0),
        )
        objects = InstanceData(
            bboxes=torch.tensor(image_boxes).reshape(-1, 4),
            labels=torch.arange(len(image_boxes)),
            masks=BitmapMasks(masks, SIZE, SIZE),
        )
        images.append(DetDataSample(metainfo=meta, gt_instances=objects))
    return images


def test_every_weight_is_used_and_masks_have_the_size_of_the_image(path):
    trained = load(path, device='cpu')
    theirs = roboflow_weights(masks=True)
    ours = trained.model.state_dict()
    used = sum(value.numel() for name, value in theirs.items() if not name.endswith('mask_token'))
    # `_extra_state` has the grid of the position table, which is no weight.
    assert sum(value.numel() for name, value in ours.items() if 'state' not in name) == used
    assert torch.equal(ours['bbox_head.masks.bias'], theirs['segmentation_head.bias'])
    prediction = trained(np.random.default_rng(0).integers(0, 256, (48, 80, 3), dtype=np.uint8))
    assert prediction.masks.shape == (QUERIES, 48, 80)
    assert prediction.masks.dtype == bool


def test_masks_of_padding_are_cut_off():
    """The masks of an image with padding are those of the padded batch, cut to the image."""
    from vit_plugin.projects.detr_family.masked_head import make_prediction

    boxes, scores = torch.rand(2, 4), torch.rand(2)
    masks = torch.randn(2, 16, 16)
    meta = samples([], shape=(40, 56))[0].metainfo
    unpadded = samples([])[0].metainfo
    labels = torch.zeros(2, dtype=torch.long)
    cut = make_prediction(meta, True, boxes, scores, labels, masks)
    whole = make_prediction(unpadded, True, boxes, scores, labels, masks)
    assert cut.masks.shape == (2, 40, 56)
    assert torch.equal(cut.masks, whole.masks[:, :40, :56])


def test_points_are_looked_up_in_masks():
    from vit_plugin.projects.detr_family.masked_head import sample_masks

    (sample,) = samples([[0.0, 0.0, 16.0, 64.0], [32.0, 16.0, 64.0, 32.0]])
    points = torch.tensor([[0.1, 0.9], [0.75, 0.4], [1.0, 1.0]])
    masks = sample.gt_instances.masks.to_tensor(torch.bool, 'cpu')
    is_inside = sample_masks(masks, torch.tensor([0, 1]), points)
    assert is_inside.tolist() == [[True, False, False], [False, True, False]]


@pytest.mark.parametrize('amp', [False, True])
def test_learns(path, amp):
    """Losses fall and every parameter learns, although one of the two images has no objects."""
    model = load(path, device='cpu').model.train()
    data = samples([[8.0, 8.0, 40.0, 40.0], [30.0, 20.0, 60.0, 60.0]], [])
    images, totals = torch.rand(2, 3, SIZE, SIZE), []
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    torch.manual_seed(0)
    for _ in range(12):
        with torch.autocast('cpu', torch.bfloat16, amp):
            losses = model.loss(images, data)
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        totals.append(total.item())
    assert {*losses} == {
        f'{layer}loss_{name}'
        for layer in ('', 'enc_')
        for name in ('cls', 'bbox', 'iou', 'mask', 'dice')
    }
    assert_all_learn(model)
    assert totals[-1] < 0.95 * totals[0]


def test_masks_without_padding_raise(path):
    model = load(path, device='cpu').model.train()
    data = samples([[8.0, 8.0, 40.0, 40.0]], shape=(32, 32))
    data[0].gt_instances.masks = data[0].gt_instances.masks.crop(np.array([0, 0, 32, 32]))
    with rejects('masks of 32 x 32 pixels do not cover a batch of 64 x 64; set pad_mask=True'):
        model.loss(torch.rand(1, 3, SIZE, SIZE), data)


def test_batches_without_objects_have_gradients(path):
    model = load(path, device='cpu').model.train()
    sum(model.loss(torch.rand(1, 3, SIZE, SIZE), samples([])).values()).backward()
    assert_all_learn(model)


@pytest.mark.nightly
def test_traced_graph_predicts_the_same(path):
    model = deploy(load(path, device='cpu').model)
    assert model.outputs == ('boxes', 'scores', 'labels', 'masks')
    images = example_inputs(model, 255 * torch.rand(2, 3, SIZE, SIZE))
    graph = trace(model, (SIZE, SIZE)).module()
    outputs, expected = graph(*images), model(*images)
    *others, masks = outputs
    assert masks.shape == (2, QUERIES, SIZE // 4, SIZE // 4)
    assert model.difference(outputs, expected) < 1e-4
    # `difference` compares masks too: flipped ones differ.
    assert model.difference((*others, masks.flip(2)), expected) > 1e-2

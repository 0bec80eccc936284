"""EoMT's heads in MMDetection and MMSegmentation: losses, predictions and mixed precision."""

from model_states import assert_all_learn
from rejection import rejects
from tiny_models import TINY

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from functools import partial

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import InstanceData, PixelData
from torch import nn

BACKBONE = dict(
    type='vit_plugin.EoMT',
    num_classes=3,
    num_queries=5,
    num_blocks=2,
    img_size=32,
    arch=dict(TINY, num_layers=3),
)
HYBRID = dict(
    BACKBONE, arch=dict(BACKBONE['arch'], patch_size=1, resnet=dict(stage_depths=(1,), width=32))
)
PMT = {**BACKBONE, 'type': 'vit_plugin.PMT', 'norm_cfg': dict(type='BN')}
TEST = dict(
    panoptic_on=True,
    semantic_on=False,
    instance_on=True,
    max_per_image=4,
    iou_thr=0.8,
    filter_low_score=False,
    object_mask_thr=0.0,
)


def segmentor(backbone: dict = BACKBONE, **test_cfg) -> nn.Module:
    pytest.importorskip('mmseg')
    import mmseg.models  # noqa: F401

    init_default_scope('mmseg')
    return MODELS.build(
        ConfigDict(
            type='EncoderDecoder',
            backbone=backbone,
            test_cfg=test_cfg or dict(mode='whole'),
            train_cfg={},
            decode_head=dict(
                type='vit_plugin.EoMTDecodeHead', num_classes=3, train_cfg=dict(num_points=64)
            ),
        )
    )


def semantic_samples(size: tuple[int, int], number: int) -> list:
    """Images with a class map: class 2 above, class 0 below, and three ignored rows."""
    from mmseg.structures import SegDataSample

    maps = torch.zeros(number, 1, *size, dtype=torch.long)
    maps[:, :, : size[0] // 2] = 2
    maps[:, :, -3:] = 255
    return [
        SegDataSample(
            metainfo=dict(img_shape=size, ori_shape=size), gt_sem_seg=PixelData(data=class_map)
        )
        for class_map in maps
    ]


def detector(stuff: int, backbone: dict = BACKBONE) -> nn.Module:
    import mmdet.models  # noqa: F401

    init_default_scope('mmdet')
    sizes = dict(num_things_classes=3 - stuff, num_stuff_classes=stuff)
    return MODELS.build(
        ConfigDict(
            type='Mask2Former',
            backbone=backbone,
            panoptic_head=dict(type='vit_plugin.EoMTHead', **sizes),
            panoptic_fusion_head=dict(
                type='MaskFormerFusionHead', **sizes, loss_panoptic=None, init_cfg=None
            ),
            train_cfg=dict(num_points=64),
            test_cfg=dict(TEST, panoptic_on=stuff > 0),
        )
    )


def objects(size: tuple[int, int], stuff: bool, number: int = 2) -> list:
    """Images with two objects, and for panoptic segmentation a map of stuff."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    samples = []
    for _ in range(number):
        masks = torch.zeros(2, *size, dtype=torch.uint8)
        masks[0, 2:9, 3:12] = masks[1, 20:, 20:] = 1
        sample = DetDataSample(
            metainfo=dict(img_shape=size, ori_shape=size, batch_input_shape=size, pad_shape=size),
            gt_instances=InstanceData(
                labels=torch.tensor([0, 1]), masks=BitmapMasks(masks.numpy(), *size)
            ),
        )
        if stuff:
            sample.gt_sem_seg = PixelData(sem_seg=torch.full((1, *size), 2))
        samples.append(sample)
    return samples


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('backbone', [BACKBONE, HYBRID, PMT], ids=['plain', 'hybrid', 'PMT'])
def test_semantic_segmentation_learns_and_predicts(backbone):
    """The loss falls, and class maps are predicted from whole images and from sliding windows."""
    torch.manual_seed(0)
    model = segmentor(backbone)
    images, samples = torch.randn(2, 3, 32, 48), semantic_samples((32, 48), 2)
    first = model.loss(images, samples)
    assert first.keys() == {
        f'decode.{part}loss_{name}'
        for name in ('cls', 'mask', 'dice')
        for part in ('', 'd0.', 'd1.')
    }
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(12):
        losses = sum(model.loss(images, samples).values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
    assert losses < 0.8 * sum(first.values())
    assert all(
        (parameter.grad is None) != parameter.requires_grad for parameter in model.parameters()
    )
    for test_cfg in (dict(mode='whole'), dict(mode='slide', crop_size=(32, 32), stride=(16, 16))):
        model.test_cfg = ConfigDict(test_cfg)
        predictions = model.eval().predict(images, samples)
        assert predictions[0].seg_logits.data.shape == (3, 32, 48)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('stuff', [0, 1])
def test_instances_and_panoptic_maps_are_predicted(stuff):
    torch.manual_seed(0)
    model, images = detector(stuff), torch.randn(2, 3, 32, 48)
    losses = model.loss(images, objects((32, 48), stuff > 0))
    assert {'loss_cls', 'loss_mask', 'loss_dice', 'd1.loss_cls'} <= losses.keys()
    sum(losses.values()).backward()
    assert_all_learn(model)
    prediction = model.eval().predict(images, objects((32, 48), stuff > 0))[0]
    assert prediction.pred_instances.masks.shape[1:] == (32, 48)
    assert (prediction.pred_instances.labels < 3 - stuff).all()
    assert ('pred_panoptic_seg' in prediction) == (stuff > 0)


@pytest.mark.filterwarnings('ignore')
def test_losses_are_float32_in_mixed_precision():
    model = segmentor()
    with torch.autocast('cpu', torch.bfloat16):
        losses = model.loss(torch.randn(2, 3, 32, 32), semantic_samples((32, 32), 2))
    assert {loss.dtype for loss in losses.values()} == {torch.float32}
    sum(losses.values()).backward()


@pytest.mark.filterwarnings('ignore')
def test_image_without_objects_has_only_a_class_loss():
    model, samples = segmentor(), semantic_samples((32, 32), 1)
    samples[0].gt_sem_seg.data.fill_(255)
    losses = model.loss(torch.randn(1, 3, 32, 32), samples)
    sum(losses.values()).backward()
    assert all(loss == 0 for name, loss in losses.items() if not name.endswith('cls'))


@pytest.mark.filterwarnings('ignore')
def test_loss_equals_that_of_transformers(monkeypatch):
    """Each mask has a single logit and a single label, so random points make no difference."""
    transformers = pytest.importorskip('transformers', minversion='5')
    from transformers.models.eomt.modeling_eomt import EomtLoss

    # Points between the outermost elements and the border would be mixed with zeros.
    sample = nn.functional.grid_sample
    monkeypatch.setattr(nn.functional, 'grid_sample', partial(sample, padding_mode='border'))
    model = segmentor()
    torch.manual_seed(0)
    classes = torch.randn(2, 5, 4)
    masks = torch.randn(2, 5, 1, 1).expand(-1, -1, 8, 8)
    targets = torch.tensor([[1, 0], [1, 1]])[..., None, None].expand(-1, -1, 32, 32)
    labels = torch.tensor([[0, 2], [1, 2]])
    config = transformers.EomtConfig(num_labels=3, train_num_points=64)
    criterion = EomtLoss(config, dict(loss_cross_entropy=2.0, loss_mask=5.0, loss_dice=5.0))
    theirs = criterion(masks, classes, [target.float() for target in targets], list(labels))
    ours = model.decode_head.loss_by_feat(
        *model.decode_head([(classes, masks)]),
        [
            InstanceData(labels=label, masks=mask)
            for label, mask in zip(labels, targets, strict=True)
        ],
        [{}, {}],
    )
    for their_name, weight, our_name in (
        ('cross_entropy', 2, 'cls'),
        ('mask', 5, 'mask'),
        ('dice', 5, 'dice'),
    ):
        torch.testing.assert_close(
            ours[f'loss_{our_name}'].squeeze(),
            weight * theirs[f'loss_{their_name}'],
            rtol=1e-5,
            atol=0,
        )


@pytest.mark.filterwarnings('ignore')
def test_different_numbers_of_classes_raise():
    model = segmentor(dict(BACKBONE, num_classes=4))
    with rejects('it has 3 classes, but the backbone has num_classes=4'):
        model.loss(torch.randn(1, 3, 32, 32), semantic_samples((32, 32), 1))

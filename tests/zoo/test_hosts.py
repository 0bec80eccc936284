"""A tiny backbone like DINOv3 takes a training step in each framework, frozen and fine-tuned."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope
from tiny_models import TINY
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks

BLOCKS, DECAY = 2, 0.5
DINOV3 = dict(
    type='vit_plugin.VisionTransformer',
    img_size=64,
    numerics='timm',
    out_type='featmap',
    arch=dict(TINY, num_layers=BLOCKS),
    encoder=dict(reg_token=4, layer_scale_init_value=0.5, qkv_bias='qv'),
    pos_embed=dict(
        type='none',
        rotary=dict(form='centred', planes='halves', shift=0.1, jitter=2.0, rescale=2.0),
    ),
)
WINDOWS = dict(
    with_cls_token=False, encoder=dict(reg_token=0, window=dict(size=3, global_blocks=(1,)))
)
VARIANTS = {
    'fine-tuned': dict(drop_path_rate=0.1),
    'frozen': dict(frozen_stages=BLOCKS),
    'half frozen': dict(frozen_stages=1),
    'recomputed': dict(with_cp=True),
    'windows': WINDOWS,
    'windows, recomputed, half frozen': dict(WINDOWS, with_cp=True, frozen_stages=1),
    'compiled': {},
    'compiled, recomputed': dict(with_cp=True),
    'compiled, half frozen, windows': dict(WINDOWS, frozen_stages=1),
}
# In MMPretrain, the fastest framework, all variants that are not compiled; in the others the first
# two. Other pairs are nightly.
QUICK = {('mmpretrain', name) for name in VARIANTS if not name.startswith('compiled')} | {
    (framework, name) for framework in ('mmdet', 'mmseg') for name in ('fine-tuned', 'frozen')
}


class Framework(NamedTuple):
    """A framework's model around a backbone, and a batch for it.

    Attributes:
        model: the config of the backbone -> that of the model.
        batch: makes random images with labels.
    """

    model: Callable[[dict], dict[str, Any]]
    batch: Callable[[], dict[str, Any]]


def classifier(backbone: dict) -> dict:
    return dict(
        type='ImageClassifier',
        backbone=backbone,
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=32),
    )


def classification_batch() -> dict:
    from mmpretrain.structures import DataSample

    return dict(
        inputs=torch.randn(2, 3, 64, 64),
        data_samples=[DataSample().set_gt_label(i) for i in (0, 1)],
    )


def detector(backbone: dict) -> dict:
    from mmengine.hub import get_config

    cfg = get_config('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py').model
    cfg.backbone = backbone
    cfg.neck = dict(type='vit_plugin.SimpleFPN', in_channels=32, out_channels=16, num_outs=5)
    cfg.bbox_head.update(num_classes=3, in_channels=16, feat_channels=16, stacked_convs=1)
    return cfg


def detection_batch() -> dict:
    from mmdet.testing import demo_mm_inputs

    return demo_mm_inputs(2, [(3, 64, 48), (3, 40, 64)], num_items=[2, 2], num_classes=3)


def segmentor(backbone: dict) -> dict:
    return dict(
        type='EncoderDecoder',
        backbone=dict(backbone, out_indices=(0, 1)),
        train_cfg={},
        test_cfg=dict(mode='whole'),
        data_preprocessor=dict(type='SegDataPreProcessor', size=(64, 48)),
        decode_head=dict(
            type='UPerHead',
            in_channels=[32, 32],
            in_index=[0, 1],
            channels=16,
            pool_scales=(1, 2),
            num_classes=3,
        ),
    )


def segmentation_batch() -> dict:
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample

    return dict(
        inputs=[torch.randint(0, 256, (3, 64, 48), dtype=torch.uint8) for _ in range(2)],
        data_samples=[
            SegDataSample(gt_sem_seg=PixelData(data=torch.randint(0, 3, (1, 64, 48))))
            for _ in range(2)
        ],
    )


FRAMEWORKS = {
    'mmpretrain': Framework(classifier, classification_batch),
    'mmdet': Framework(detector, detection_batch),
    'mmseg': Framework(segmentor, segmentation_batch),
}


@pytest.mark.parametrize(
    ('framework', 'variant'),
    [
        pytest.param(
            framework, variant, marks=() if (framework, variant) in QUICK else pytest.mark.nightly
        )
        for framework in FRAMEWORKS
        for variant in VARIANTS
    ],
)
def test_a_step_trains_the_right_parameters_at_the_right_rates(framework, variant):
    pytest.importorskip(framework)
    init_default_scope(framework)
    model = MODELS.build(FRAMEWORKS[framework].model(merged(DINOV3, VARIANTS[variant]))).train()
    backbone = model.backbone
    if variant.startswith('compiled'):
        torch.compiler.reset()
        backbone.compile(backend='aot_eager', fullgraph=True)
    wrapper = build_optim_wrapper(
        model,
        dict(
            type='OptimWrapper',
            optimizer=dict(type='AdamW', lr=1e-2, weight_decay=0.1),
            constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
            paramwise_cfg=dict(layer_decay_rate=DECAY),
        ),
    )
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    losses = model.train_step(FRAMEWORKS[framework].batch(), wrapper)
    assert all(torch.isfinite(torch.as_tensor(value)).all() for value in losses.values())
    parameters = dict(model.named_parameters())
    unchanged = {
        name for name, parameter in parameters.items() if torch.equal(parameter, before[name])
    }
    assert unchanged == frozen(model)
    assert rates(model, wrapper.optimizer) == {
        name: 1e-2 * DECAY ** (BLOCKS + 1 - depth(name))
        for name in parameters
        if name not in unchanged
    }
    assert not any(module.training for module in backbone.blocks[: max(backbone.frozen_stages, 0)])


def merged(base: dict, changes: dict) -> dict:
    """The arguments with changes; those of ``encoder`` are merged."""
    return dict(base, **dict(changes, encoder=dict(base['encoder'], **changes.get('encoder', {}))))


def depth(name: str) -> int:
    """The layer of a parameter: 0 for the stem, then the blocks, then the norm, neck and head."""
    match name.split('.'):
        case 'backbone', 'blocks', block, *_:
            return 1 + int(block)
        case 'backbone', 'norm', *_:
            return BLOCKS + 1
        case 'backbone', *_:
            return 0
    return BLOCKS + 1


def frozen(model: nn.Module) -> set[str]:
    """Names of parameters that ``frozen_stages`` freezes; with all blocks also the final norm."""
    stages = model.backbone.frozen_stages
    last_layer = BLOCKS + 1 if stages == BLOCKS else stages
    return {
        name
        for name, _ in model.named_parameters()
        if name.startswith('backbone.') and depth(name) <= last_layer
    }


def rates(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, float]:
    """The learning rate of each trained parameter, by name."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        names[parameter]: group['lr']
        for group in optimizer.param_groups
        for parameter in group['params']
    }

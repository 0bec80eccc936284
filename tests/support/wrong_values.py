"""Call every registered class with wrong values for each of its arguments.

``RIGHT`` has valid arguments of each class, which other tests use too. Each is replaced by all
``VALUES``, misspelled and, if required, left out in turn. A call must end with an error in one
sentence, or make an object that works on a tiny input, see ``WORKS``. ``python
tests/support/wrong_values.py`` prints the number of each outcome, and every call without such an
error.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf, isfinite, nan
from typing import Any

import torch
from tiny_models import TINY, TINY_SIZES
from torch import Tensor, nn

import vit_plugin.data
import vit_plugin.engine
import vit_plugin.models  # noqa: F401
from vit_plugin import registry
from vit_plugin.arguments import Signature
from vit_plugin.errors import ConfigError


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)


# Valid arguments of a tiny object of each class, with all nested options that are to be replaced. A
# key may have a remark after the class's name.
RIGHT: dict[str, dict[str, Any]] = {
    'VisionTransformer': dict(
        arch=TINY,
        img_size=32,
        patch_embed=dict(in_channels=3),
        with_cls_token=True,
        out_indices=(0, 1),
        pos_embed=dict(
            type='learned',
            interpolate_mode='bilinear',
            prefix_rows=True,
            relative=False,
            source_grid=(4, 4),
        ),
        encoder=dict(
            dist_token=1,
            reg_token=2,
            pre_norm=True,
            final_norm=True,
            qkv_bias=True,
            attn_drop_rate=0.0,
            qk_norm=False,
            layer_scale_init_value=0.1,
            gated_mlp=False,
        ),
        numerics=dict(base='timm', norm_cfg=dict(type='LN', eps=1e-5)),
        out_type='raw',
        drop_rate=0.1,
        drop_path_rate=0.1,
        frozen_stages=0,
        with_cp=False,
    ),
    'VisionTransformer with windows': dict(
        arch=dict(TINY, patch_size=1, resnet=dict(stage_depths=(1,), width=32)),
        img_size=(32, 48),
        with_cls_token=False,
        encoder=dict(window=dict(size=2, global_blocks=(1,))),
        out_type='pyramid',
        pos_embed='relative',
    ),
    'VisionTransformer with rotary positions': dict(
        arch=TINY,
        img_size=32,
        pos_embed=dict(
            type='none',
            rotary=dict(
                form='index',
                temperature=100.0,
                order='yx',
                planes='halves',
                offset=0.0,
                native_grid=(4, 4),
                shift=0.1,
                jitter=1.1,
                rescale=2.0,
            ),
        ),
        encoder=dict(
            qkv_bias='qv',
            num_kv_heads=2,
            attn_norm=True,
            mlp_norm=True,
            proj_bias=True,
            mlp_layer_scale=False,
        ),
    ),
    'MMVisionTransformer': dict(
        arch=TINY_SIZES,
        img_size=32,
        patch_size=8,
        in_channels=3,
        out_indices=(0, 1),
        drop_rate=0.1,
        drop_path_rate=0.1,
        qkv_bias=True,
        norm_cfg=dict(type='LN', eps=1e-5),
        final_norm=True,
        out_type='raw',
        with_cls_token=True,
        frozen_stages=0,
        interpolate_mode='bilinear',
        layer_scale_init_value=0.1,
        pre_norm=True,
        patch_cfg=dict(
            in_channels=3, kernel_size=8, stride=8, padding='corner', dilation=1, bias=True
        ),
        layer_cfgs=dict(
            attn_drop_rate=0.1, num_fcs=2, ffn_type='origin', act_cfg=dict(type='GELU')
        ),
    ),
    'MMDistilledVisionTransformer': dict(
        arch=TINY_SIZES, img_size=32, patch_size=8, layer_cfgs=dict(qkv_bias=False)
    ),
    'MMDeiT3': dict(
        arch=TINY_SIZES, img_size=32, patch_size=8, use_layer_scale=True, with_cls_token=True
    ),
    'MMViTEVA02': dict(
        arch=TINY_SIZES,
        img_size=32,
        patch_size=8,
        sub_ln=True,
        attn_drop_rate=0.1,
        drop_rate=0.0,
        proj_drop_rate=0.0,
    ),
    'MMMoCoV3ViT': dict(
        arch=TINY_SIZES,
        img_size=32,
        patch_size=8,
        frozen_stages=1,
        stop_grad_conv1=True,
        norm_eval=True,
    ),
    'TimmBackbone': dict(
        model_name='test_vit',
        out_indices=(0, 1),
        out_type='featmap',
        img_size=64,
        in_channels=3,
        drop_rate=0.1,
        drop_path_rate=0.1,
        frozen_stages=0,
        with_cp=False,
    ),
    'MAEViT': dict(arch=TINY, img_size=64, mask_ratio=0.5),
    'SimMIMViT': dict(arch=TINY, img_size=32),
    'IBOTViT': dict(arch=TINY, img_size=32),
    'EoMT': dict(arch=TINY, img_size=32, num_classes=3, num_queries=4, num_blocks=1),
    'WindowedViT': dict(
        arch=TINY, img_size=32, encoder=dict(window=dict(size=2, global_blocks=(1,)))
    ),
    'PMT': dict(
        arch=TINY,
        img_size=32,
        num_classes=3,
        num_queries=4,
        num_blocks=1,
        feedforward_channels=64,
        norm_cfg=dict(type='BN', eps=1e-5),
    ),
    'ViTAdapter': dict(
        backbone=dict(arch=TINY, img_size=32, encoder=dict(final_norm=True)),
        interactions=2,
        inject=True,
        num_extra_extractors=1,
        add_tokens='last',
        conv_inplane=8,
        attention=dict(num_heads=2, num_points=2, value_ratio=0.5),
        cffn_ratio=0.25,
        init_values=0.1,
        out_indices=(0, 1, 2, 3),
        norm_cfg=dict(type='BN', eps=1e-5),
        drop_path_rate=0.1,
        with_cp=False,
    ),
    'PatchEmbed': dict(
        in_channels=3,
        embed_dims=32,
        patch_size=8,
        norm_cfg=dict(type='LN', eps=1e-5),
        bias=True,
        act_cfg=dict(type='GELU'),
        padding='same',
        numerics='timm',
    ),
    'FlexiPatchEmbed': dict(
        in_channels=3, embed_dims=32, patch_size=8, kernel_size=16, sizes=(8, 16)
    ),
    'ResNetEmbed': dict(
        in_channels=3,
        embed_dims=32,
        stage_depths=(1, 1),
        width=32,
        root_stride=4,
        patch_size=1,
        with_cp=False,
        with_root=True,
    ),
    'PooledResNetEmbed': dict(
        in_channels=3,
        embed_dims=32,
        channels=(32, 64),
        patch_size=1,
        with_cp=False,
        with_root=True,
    ),
    'TimmEmbed': dict(
        model_name='resnet10t',
        in_channels=3,
        embed_dims=32,
        out_indices=(0, 1),
        pretrained=False,
        model_kwargs=None,
    ),
    'ConvEmbed': dict(
        in_channels=3,
        embed_dims=32,
        channels=(8, 32),
        strides=(4, 2),
        kernel_sizes=(5, 3),
        conv_act='ReLU',
        patch_size=1,
        projection=False,
    ),
    'MBConvEmbed': dict(
        in_channels=3,
        embed_dims=32,
        channels=(8, 16),
        stage_depths=(1, 1),
        with_cp=False,
        with_root=True,
    ),
    'SimpleFPN': dict(
        in_channels=32,
        out_channels=16,
        num_outs=5,
        scales=(4, 2, 1, 0.5),
        add_extra_convs=True,
        norm_cfg=dict(type='LN2d'),
    ),
    'C2fProjector': dict(
        in_channels=[32],
        out_channels=16,
        scales=(2, 1, 0.5),
        num_blocks=1,
        norm_cfg=dict(type='BN'),
    ),
    'TokenPooling': dict(
        mode='map',
        num_prefix_tokens=1,
        in_channels=32,
        map_cfg=dict(num_heads=2, feedforward_channels=64, numerics='timm'),
        norm_cfg=dict(type='LN', eps=1e-6),
    ),
    'ViTClsHead': dict(
        num_classes=3,
        in_channels=32,
        hidden_dim=8,
        act_cfg=dict(type='Tanh'),
        topk=(1, 2),
        cal_acc=False,
        loss=dict(type='mmpretrain.CrossEntropyLoss'),
    ),
    'EoMTHead': dict(
        num_things_classes=2,
        num_stuff_classes=1,
        loss_weights=dict(cls=2.0, mask=5.0, dice=5.0),
        no_object_weight=0.1,
        test_cfg=None,
        train_cfg=dict(num_points=8, oversample_ratio=3.0, importance_sample_ratio=0.75),
    ),
    'LWDETRHead': dict(
        num_classes=3,
        num_queries=4,
        num_groups=2,
        num_levels=1,
        embed_dims=32,
        decoder=dict(
            num_layers=1,
            num_heads=2,
            num_cross_heads=2,
            num_points=2,
            feedforward_channels=32,
            drop_rate=0.1,
        ),
    ),
    'DFINEHead': dict(
        num_classes=3,
        num_queries=4,
        in_channels=[32],
        embed_dims=32,
        variant='d_fine',
        decoder=dict(
            num_layers=1,
            num_heads=2,
            num_points=(2,),
            feedforward_channels=32,
            drop_rate=0.1,
            offset_scale=0.5,
            gated=True,
        ),
        distributions=dict(
            bins=8,
            up=0.5,
            scale=4.0,
            top=4,
            quality_channels=8,
            quality_layers=2,
            shared=False,
            localization=0.15,
            distillation=1.5,
        ),
        noise=dict(number=4, labels=0.5, boxes=1.0),
        joint_matching=True,
    ),
    'ECSegHead': dict(
        mask_scale=2.0,
        predicted_blocks=1,
        num_classes=3,
        num_queries=4,
        in_channels=[32],
        embed_dims=32,
        variant='ecdet',
        decoder=dict(num_layers=1, num_heads=2, num_points=(2,), feedforward_channels=32),
        loss_cls=dict(type='vit_plugin.MatchabilityAwareLoss', loss_weight=2.0),
        loss_bbox=dict(type='mmdet.L1Loss', loss_weight=1.0),
        loss_iou=dict(type='mmdet.GIoULoss', loss_weight=1.0),
    ),
    'RTDETRHead': dict(
        num_classes=3,
        num_queries=4,
        in_channels=[32],
        embed_dims=32,
        variant='rt_detr',
        decoder=dict(num_layers=1, num_heads=2, num_points=(2,), feedforward_channels=32),
        noise=dict(number=4, labels=0.5, boxes=1.0),
        joint_matching=False,
    ),
    'ResNetD': dict(depth=18, out_indices=(2, 3), frozen_norms=True),
    'HGNetV2': dict(
        arch=dict(
            stem=(4, 8), stages=[(8, 4, 8, 1, False, False, 3, 1), (8, 4, 8, 1, True, True, 3, 1)]
        ),
        learnable_affine=True,
        out_indices=(0, 1),
        frozen_norms=True,
        in_channels=3,
    ),
    'HybridEncoder': dict(
        in_channels=[32],
        out_channels=16,
        kind='elan',
        depth=0.34,
        expansion=0.5,
        num_layers=1,
        num_heads=2,
        feedforward_channels=16,
        drop_rate=0.1,
        attended=(0,),
        norm_cfg=dict(type='BN'),
        projects=True,
    ),
    'LiteEncoder': dict(
        in_channels=[32],
        out_channels=16,
        depth=0.34,
        expansion=0.5,
        trailing=True,
        norm_cfg=dict(type='BN'),
    ),
    'SpatialTuningAdapter': dict(
        arch=dict(TINY, num_layers=3),
        img_size=32,
        out_indices=(0, 1, 2),
        out_channels=16,
        conv_inplane=4,
        adapter_norm_cfg=dict(type='BN'),
        norms_last=True,
    ),
    'ECViT': dict(
        arch=TINY,
        img_size=32,
        out_indices=(0, 1),
        out_channels=16,
        projection_norm_cfg=dict(type='BN'),
    ),
    'MatchabilityAwareLoss': dict(alpha=1.0, gamma=1.5, loss_weight=1.0),
    'OverlapVarifocalLoss': dict(alpha=0.75, gamma=2.0, loss_weight=1.0),
    'RFDETRSegHead': dict(
        mask_scale=2.0,
        num_classes=3,
        num_queries=4,
        num_groups=2,
        num_levels=1,
        embed_dims=32,
        decoder=dict(num_layers=1, num_heads=2, num_cross_heads=2, feedforward_channels=32),
    ),
    'FrozenResNet': dict(depth=50, out_indices=(2, 3), dilated=True),
    **{
        f'Published{name}DETRHead': dict(
            num_classes=3,
            num_queries=4,
            embed_dims=32,
            unused_rows=(0,),
            shared_classes=True,
            test_cfg=dict(max_per_img=4),
        )
        for name in ('', 'Conditional', 'Deformable')
    },
    'IoUAwareBCELoss': dict(alpha=0.25, gamma=2.0, loss_weight=1.0),
    'EoMTDecodeHead': dict(num_classes=3, ignore_index=255, align_corners=False),
    'TransUNetHead': dict(
        in_channels=(8, 32),
        strides=(8, 16),
        num_classes=3,
        in_index=(0, 1),
        hidden_channels=16,
        decoder_channels=(16, 8, 8, 4),
        norm_cfg=dict(type='BN', eps=1e-5),
        align_corners=True,
        dropout_ratio=0.1,
        ignore_index=255,
    ),
    'SoftDiceLoss': dict(class_weight=(0.5, 1.0), loss_weight=1.0, eps=1e-5),
    'DPTDepthHead': dict(
        in_channels=(8, 32),
        strides=(8, 16),
        readout_type='ignore',
        level_channels=(8, 16),
        channels=8,
        head_channels=4,
        norm_cfg=dict(type='BN', eps=1e-5),
        max_depth=10.0,
        target='depth',
    ),
    'LinearDepthHead': dict(
        in_channels=(32,), max_depth=10.0, min_depth=0.001, num_bins=8, upsample=4
    ),
    'SiLogLoss': dict(variance_focus=0.85, loss_weight=1.0),
    'ScaleShiftInvariantLoss': dict(trim=0.2, gradient_weight=0.5, scales=4, loss_weight=1.0),
    'DepthMetric': dict(min_depth_eval=0.001, max_depth_eval=80.0, mode='depth'),
    'LoadDepthAnnotations': dict(scale=0.001, max_depth=80.0),
    'DistilledViTClsHead': dict(
        num_classes=3, in_channels=32, distillation='hard', alpha=0.5, tau=3.0
    ),
    'Distiller': dict(
        teacher=dict(
            source=dict(
                type='mmpretrain.ImageClassifier',
                backbone=dict(type='vit_plugin.VisionTransformer', arch=TINY, img_size=32),
            ),
            arch=None,
            config=None,
            img_size=32,
            dtype='float32',
        ),
        losses=[dict(type='vit_plugin.VectorDistillation', weight=1.0)],
        label_weight=1.0,
        backbone=dict(type='vit_plugin.VisionTransformer', arch=TINY, img_size=32),
        neck=None,
    ),
    'LogitDistillation': dict(
        channels=3, teacher_channels=3, weight=1.0, temperature=2.0, target='hard'
    ),
    'VectorDistillation': dict(channels=8, teacher_channels=4, weight=1.0, distance='cosine'),
    'MapDistillation': dict(channels=8, teacher_channels=4, weight=1.0, distance='mse'),
    'GramDistillation': dict(channels=8, teacher_channels=4, weight=1.0),
    'SimilarityDistillation': dict(
        channels=8,
        teacher_channels=4,
        weight=1.0,
        length=8,
        temperature=0.2,
        teacher_temperature=0.01,
    ),
    'AugmentingPreprocessor': dict(
        augments=[dict(type='RandomFlip', prob=0.5)],
        mean=[1.0, 2.0, 3.0],
        std=[1.0, 2.0, 3.0],
        pad_size_divisor=1,
        pad_value=0,
        to_rgb=True,
        to_onehot=False,
        num_classes=3,
    ),
    'BandsPreprocessor': dict(mean=[1.0, 2.0, 3.0, 4.0], std=[1.0, 2.0, 3.0, 4.0]),
    'CopyBlend': dict(num_objects=3, min_area=100, margins=(0.1, 0.25), weights=(0.45, 0.55)),
    'CutTile': dict(),
    'RandomMix': dict(transforms=[dict(type='vit_plugin.CopyBlend')], prob=0.5),
    'FloorCenterCrop': dict(crop_size=(8, 6)),
    'MultiViewPreprocessor': dict(
        views=[dict(augments=[dict(type='RandomFlip', prob=0.5)], number=2)],
        mean=[1.0, 2.0, 3.0],
        std=[1.0, 2.0, 3.0],
        to_rgb=True,
    ),
    'DINO': dict(
        backbone=dict(type='vit_plugin.IBOTViT', arch=TINY, img_size=32),
        neck=dict(type='vit_plugin.DINONeck', in_channels=32, out_channels=8),
        head=dict(type='vit_plugin.DINOHead', out_channels=8),
        num_large=2,
        momentum=0.9,
        mask_ratio=(0.1, 0.5),
        koleo_weight=0.1,
        data_preprocessor=None,
    ),
    'DINOv3': dict(
        gram_weight=1.0,
        gram_refresh=5,
        gram_scale=2,
        gram_negatives='zero',
        frozen_dtype=None,
        mask_ratio=(0.1, 0.5),
        koleo_weight=0.1,
        backbone=dict(type='vit_plugin.VisionTransformer', arch=TINY, img_size=32),
        neck=dict(type='vit_plugin.DINONeck', in_channels=32, out_channels=8),
        head=dict(type='vit_plugin.DINOHead', out_channels=8),
    ),
    'DINONeck': dict(in_channels=32, hid_channels=16, bottleneck=8, out_channels=12, num_layers=2),
    'DINOHead': dict(
        out_channels=8,
        temperature=0.1,
        teacher_temperature=(0.04, 0.07),
        warmup=0.3,
        center_momentum=0.9,
        centering='sinkhorn_knopp',
    ),
    'Digits': dict(
        split='val', val_fraction=0.2, seed=0, indices=4, test_mode=True, max_refetch=10
    ),
    'LoadRandomResizedCrop': dict(
        scale=8,
        backend_args=None,
        crop_ratio_range=(0.1, 1.0),
        max_attempts=10,
        aspect_ratio_range=(0.7, 1.3),
        interpolation='bilinear',
        backend='cv2',
    ),
    'LoadCachedImage': dict(
        window=(0, 4095),
        to_float32=False,
        color_type='color',
        imdecode_backend='cv2',
        ignore_empty=False,
    ),
    'LoadImage': dict(
        window=(0, 4095),
        to_float32=False,
        color_type='color',
        imdecode_backend='cv2',
        ignore_empty=False,
    ),
    'LoadImageSlice': dict(window=(-125.0, 275.0)),
    'LoadSliceAnnotations': {},
    'SurfaceMetric': dict(
        tolerance=2.0,
        spacing=(3.0, 1.0, 1.0),
        ignore_background=True,
        ignore_index=255,
        absent='left_out',
        collect_device='cpu',
    ),
    'OptimizeHook': {},
    'ReportHook': {},
    'ProgressHook': {},
    'MaskAnnealingHook': dict(begin=(0.0, 0.5), end=(0.5, 1.0), power=0.9),
    'PicturesHook': dict(pictures=('features',), samples=(0,), interval=2),
    'RuntimeInfoHook': dict(non_finite='skip', max_skipped=10),
    'SeedHook': {},
    'ThroughputHook': {},
    'UnreadableHook': dict(max_share=0.01),
    'CheckpointHook': dict(
        interval=1,
        by_epoch=True,
        max_keep_ckpts=2,
        save_last=True,
        keep_every=5,
        background=False,
        format='file',
    ),
    'EMAHook': dict(begin_iter=1, momentum=0.1, interval=1, update_buffers=False),
    'PreemptionHook': dict(interval=2, signals=('SIGTERM',)),
    'DefaultSampler': dict(dataset=range(9), shuffle=True, seed=1, round_up=True),
    'InfiniteSampler': dict(dataset=range(9), shuffle=True, seed=1),
    'Muon': dict(
        params=[torch.nn.Parameter(torch.ones(2, 3))],
        lr=0.1,
        momentum=0.9,
        weight_decay=0.1,
        steps=5,
        betas=(0.9, 0.99),
        eps=1e-8,
    ),
    'OptimWrapper': dict(optimizer=optimizer, accumulative_counts=1, clip_grad=dict(max_norm=1.0)),
    'AmpOptimWrapper': dict(
        optimizer=optimizer,
        dtype='bfloat16',
        loss_scale='dynamic',
        fused_attention=False,
        clip_grad=dict(max_norm=1.0),
    ),
    'LayerDecayOptimWrapperConstructor': dict(
        optim_wrapper_cfg=dict(optimizer=dict(type='SGD', lr=0.1, weight_decay=0.1)),
        paramwise_cfg=dict(layer_decay_rate=0.5, norm_decay_mult=0.0),
    ),
}


def registered() -> set[str]:
    """The names of all classes in our registries, with those that are imported later."""
    registries = [root for root in vars(registry).values() if isinstance(root, registry.Registry)]
    for root in registries:
        root.import_from_location()
    return {name for root in registries for name in (*root.module_dict, *root.lazy_modules)}


KNOWN = registered()
# A project's folder may have been removed, see benchmarks/deletion.py.
RIGHT = {name: call for name, call in RIGHT.items() if name.partition(' ')[0] in KNOWN}

# Wrong for most arguments.
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    -0.5,
    nan,
    inf,
    10**9,
    '',
    '3',
    'nonsense',
    b'x',
    [],
    [-1],
    ['a'],
    (1, 2, 3, 4, 5, 6, 7),
    {},
    dict(nonsense=1),
    {1: 2},
    {3},
    object(),
    lambda: None,
)


def wrong_calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield a key of RIGHT, what is wrong, and all arguments, for each wrong call."""
    for name, right in RIGHT.items():
        yield from ((name, field, kwargs) for field, kwargs in wrong_variants(right))
        for key in Signature.of(cls_of(name)).required:
            yield (
                name,
                f'without {key}',
                {other: value for other, value in right.items() if other != key},
            )


def wrong_variants(right: dict[str, Any], path: str = '') -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield copies of a call, each with one wrong value, misspelled name or unknown argument."""
    for key, value in right.items():
        for wrong in VALUES:
            if isinstance(wrong, bool) and isinstance(value, bool):  # not wrong
                continue
            yield f'{path}{key}={wrong!r}', {**right, key: wrong}
        others = {name: kept for name, kept in right.items() if name != key}
        yield f'{path}{key} misspelled', {**others, key[:-1]: value}
        # The options of another framework's class are checked by that class.
        if isinstance(value, dict) and '.' not in value.get('type', ''):
            yield from (
                (field, {**right, key: inner})
                for field, inner in wrong_variants(value, f'{path}{key}.')
            )
    yield f'{path}nonsense', {**right, 'nonsense': 1}


def cls_of(name: str) -> type:
    """The class of a key of RIGHT."""
    name = name.partition(' ')[0]
    return next(
        value.get(name)
        for value in vars(registry).values()
        if isinstance(value, registry.Registry)
        and name in {*value.module_dict, *value.lazy_modules}
    )


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in nested containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


TOKENS, MAP = torch.randn(2, 17, 32), torch.randn(2, 32, 8, 8)  # tiny inputs
DEPTHS = torch.rand(2, 1, 8, 8)
# Class -> what computes something with an object and a tiny input. Other classes are only built.
WORKS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        (
            'VisionTransformer',
            'MMVisionTransformer',
            'MMDistilledVisionTransformer',
            'MMDeiT3',
            'MMViTEVA02',
            'MMMoCoV3ViT',
            'EoMT',
            'PMT',
            'WindowedViT',
            'ViTAdapter',
            'PatchEmbed',
            'FlexiPatchEmbed',
            'ResNetEmbed',
            'PooledResNetEmbed',
            'TimmBackbone',
            'FrozenResNet',
            'ResNetD',
            'TimmEmbed',
        ),
        lambda built: built(
            torch.randn(
                2,
                getattr(
                    built,
                    'in_channels',
                    getattr(getattr(built, 'patch_embed', None), 'in_channels', 3),
                ),
                64,
                64,
            )
        ),
    ),
    **dict.fromkeys(
        ('IBOTViT', 'MAEViT', 'SimMIMViT'),
        lambda built: built(torch.randn(2, 3, 64, 64), mask=None),
    ),
    'DINONeck': lambda built: built((TOKENS[:, 0],)),
    'DINOHead': lambda built: built.loss(
        torch.randn(3, 2, len(built.center)), torch.randn(2, 2, len(built.center))
    ),
    'MultiViewPreprocessor': lambda built: built(
        dict(inputs=torch.zeros(2, 3, 32, 32, dtype=torch.uint8)), True
    ),
    **dict.fromkeys(
        (
            'SimpleFPN',
            'C2fProjector',
            'LWDETRHead',
            'RFDETRSegHead',
            'DFINEHead',
            'ECSegHead',
            'RTDETRHead',
            'HybridEncoder',
            'LiteEncoder',
        ),
        lambda built: built((MAP,)),
    ),
    'LinearDepthHead': lambda built: built(
        [
            torch.randn(2, channels, 8, 8)
            for channels in torch.as_tensor(built.in_channels).reshape(-1).tolist()
        ]
    ),
    'DPTDepthHead': lambda built: built((torch.randn(2, 8, 8, 8), MAP[..., ::2, ::2])),
    **dict.fromkeys(
        ('SiLogLoss', 'ScaleShiftInvariantLoss'), lambda built: built(DEPTHS + 0.1, DEPTHS)
    ),
    'TokenPooling': lambda built: built((TOKENS,)),
    'ViTClsHead': lambda built: built((TOKENS[:, 0],)),
    'DistilledViTClsHead': lambda built: built((TOKENS,)),
    'AugmentingPreprocessor': lambda built: built(
        dict(inputs=torch.zeros(2, 3, 32, 32, dtype=torch.uint8)), True
    ),
    'SoftDiceLoss': lambda built: built(
        torch.randn(2, len(built.class_weight or 'ab'), 8, 8), torch.ones(2, 8, 8, dtype=torch.long)
    ),
    'Digits': lambda built: built[0],
}


def outcome(name: str, kwargs: dict[str, Any]) -> tuple[str, str]:
    """The result of a call, and the text of its error if it has one.

    The result is ``sentence`` for a ConfigError of one sentence, else ``other exception``. For an
    accepted call it is ``works``, or ``broken`` if the object raises or computes NaN or infinity.
    """
    kwargs = {key: value() if value is optimizer else value for key, value in kwargs.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            built = cls_of(name)(**kwargs)
    except ConfigError as error:
        text = str(error)
        return ('sentence' if '\n' not in text and text[-1] in '.?' else 'other exception'), text
    except Exception as error:
        return 'other exception', f'{type(error).__name__}: {error}'
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter('ignore')
            out = WORKS.get(name.partition(' ')[0], lambda built: None)(built)
        finite = all(isfinite(tensor.float().abs().sum().item()) for tensor in tensors(out))
    except ConfigError as error:
        return 'sentence', str(error)
    except Exception as error:
        return 'broken', f'{type(error).__name__}: {error}'
    return ('works', '') if finite else ('broken', 'NaN')


if __name__ == '__main__':
    counts: Counter[str] = Counter()
    for name, field, kwargs in wrong_calls():
        result, text = outcome(name, kwargs)
        counts[result] += 1
        if result != 'sentence':
            print(f'{result:16} {name}({field}) {text[:150]!r}')
    print(sum(counts.values()), dict(counts))

"""The models that Roboflow publishes, in its own files and in those of transformers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Classes, Published, detector_settings, told

PREFIX = 'backbone.0.'
EMBEDDINGS = f'{PREFIX}encoder.encoder.embeddings.'
TABLE = f'{EMBEDDINGS}position_embeddings'
LAYERS = 'transformer.decoder.layers.'
SELF_DIMS, CROSS_DIMS = 32, 16  # channels of a head of the decoder
MASKS, MASK_STRIDE = 'segmentation_head.bias', 4  # pixels of the image
UNSUPPORTED = {  # beginnings of keys of other models, and what these are
    f'{EMBEDDINGS}register_tokens': 'its backbone has registers, which no window here has',
    'keypoint_': 'it predicts keypoints, which no model here does',
    f'{PREFIX}cross_attn_projector.': 'it has a second projector, which no model here has',
    f'{PREFIX}encoder.base_model.': 'its LoRA adapters are not merged',
}


class Trunk(NamedTuple):
    """What shapes do not tell of a published backbone.

    Attributes:
        stages: outputs after so many blocks. A block of such a number is global, too.
        windows: windows along a side.
        resolution: side of the images in pixels; None is that of the position table.
    """

    stages: tuple[int, ...] = (3, 6, 9, 12)
    windows: int = 2
    resolution: int | None = None


# By the patch size, and the side of the position table in patches.
TRUNKS = {
    (14, 37): Trunk((2, 5, 8, 11), 4, 560),  # Base, and Large of 2025
    (12, 26): Trunk(windows=1),  # Seg Nano
    (20, 35): Trunk(windows=1),  # XL
}


def rf_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an RF-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if it is one that cannot be built here, or a file that is damaged.
    """
    if TABLE not in published.weights or published.kind not in ('', 'rf_detr'):
        return None
    for start, why in UNSUPPORTED.items():
        if any(name.startswith(start) for name in published.weights):
            raise ConfigError(f'{why}; give another model')
    rows, dims = published.shape('class_embed.weight')
    classes = Classes(rows, published.names)
    backbone, side = _backbone(published)
    scales, queries = _scales(published), _queries(published)
    said = {**published.settings, **published.config}
    model: Section = dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.C2fProjector',
            in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
            out_channels=dims,
            scales=scales,
            num_blocks=published.count(f'{PREFIX}projector.stages.0.0.m.'),
            # transformers names another eps than the authors' code has.
            norm_cfg=dict(type='LN2d', eps=told(said, 'layer_norm_eps', float, 1e-6)),
            widest=None,
        ),
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=len(classes.names),
            unused_rows=classes.unused,
            empty_proposals=not published.kind,  # transformers' code leaves them out
            num_levels=len(scales),
            embed_dims=dims,
            decoder=_decoder(published, said, dims, len(scales)),
            **queries,
        ),
        test_cfg=dict(max_per_img=told(said, 'num_select', PositiveInt, queries['num_queries'])),
    )
    if masks := MASKS in published.weights:
        ratio = told(said, 'mask_downsample_ratio', PositiveInt, MASK_STRIDE)
        scale = backbone['arch']['patch_size'] / ratio
        model['bbox_head'] |= dict(type='vit_plugin.RFDETRSegHead', mask_scale=scale)
    pixels = published.pixels(side)
    return detector_settings(model, classes.names, masks=masks, **pixels), classes.names


def _queries(published: Published) -> Section:
    """The groups of queries, and how many are in each."""
    groups = published.count('transformer.enc_output.')
    queries = published.shape('refpoint_embed.weight')[0]
    return dict(num_groups=groups, num_queries=queries // max(groups, 1))


def _decoder(published: Published, said: Section, dims: int, num_levels: int) -> Section:
    """The options of the decoder, by its shapes and what its file says."""
    heads, cross = (
        told(said, name, PositiveInt, told(said, theirs, PositiveInt, dims // channels))
        for name, theirs, channels in (
            ('decoder_self_attention_heads', 'sa_nheads', SELF_DIMS),
            ('decoder_cross_attention_heads', 'ca_nheads', CROSS_DIMS),
        )
    )
    places = published.shape(f'{LAYERS}0.cross_attn.attention_weights.weight')[0]
    return dict(
        num_layers=published.count(LAYERS),
        num_heads=heads,
        num_cross_heads=cross,
        num_points=places // (cross * num_levels),
        feedforward_channels=published.shape(f'{LAYERS}0.linear1.weight')[0],
    )


def _backbone(published: Published) -> tuple[Section, int]:
    """The backbone, and the side of its images."""
    config = told(published.config, 'backbone_config', Mapping, {})
    backbone = published.vit(config, num_heads=0)
    blocks, patch = (backbone['arch'][name] for name in ('num_layers', 'patch_size'))
    side = backbone['img_size']
    trunk, said = TRUNKS.get((patch, side // patch), Trunk()), {**published.settings, **config}
    known = told(said, 'out_feature_indexes', Sequence[PositiveInt], trunk.stages)
    stages = told(said, 'out_indices', Sequence[PositiveInt], known)
    backbone |= dict(
        type='vit_plugin.WindowedViT',
        out_indices=[stage - 1 for stage in stages],
        pos_embed=dict(interpolate_mode='bicubic'),
        encoder=dict(
            window=dict(
                number=told(said, 'num_windows', PositiveInt, trunk.windows),
                global_blocks=[stage for stage in stages if stage < blocks],
            ),
            layer_scale_init_value=1.0,
        ),
    )
    return backbone, told(said, 'resolution', PositiveInt, trunk.resolution or side)


def _scales(published: Published) -> list[float]:
    """The size of each output of the projector over that of its inputs."""
    start, scales = f'{PREFIX}projector.stages_sampling.', []
    for i in range(published.count(f'{PREFIX}projector.stages.')):
        larger, smaller = (f'{start}{i}.0.0.{name}' for name in ('weight', 'conv.weight'))
        scales.append(
            2 if larger in published.weights else 0.5 if smaller in published.weights else 1
        )
    return scales

"""Read RF-DETR, in Roboflow's own files and in the format of transformers.

The result is the config of the same model here. Each entry of the published config has to be read,
required to have a supported value, compared with the weights, or ignored:
:class:`~vit_plugin.weights.foreign_config.ForeignConfig` rejects others. Roboflow's files state
little, so most settings are inferred from the shapes of the weights.
"""

from collections.abc import Sequence

from vit_plugin.arguments.fields import PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.projects.detr_family.published_classes import (
    DetectorClasses,
    names_of_all_rows,
    stated_names,
)
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_settings import detector_settings

from .rf_detr_kinds import RF_DETR_KIND
from .rf_detr_settings import (
    BACKBONE_PREFIX,
    MASK_BIAS,
    RFDETRSettings,
    map_scales,
    read_transformers,
)
from .roboflow_settings import read_roboflow, roboflow_settings

EMBEDDINGS = f'{BACKBONE_PREFIX}encoder.encoder.embeddings.'
POSITION_TABLE = f'{EMBEDDINGS}position_embeddings'
MASK_MLP = 'segmentation_head.query_features_block.layers.0.weight'
UNSUPPORTED = {  # prefixes of keys in unsupported models -> the reason
    f'{EMBEDDINGS}register_tokens': 'its backbone has registers, which a WindowedViT lacks',
    'keypoint_': 'it predicts keypoints, which no model here does',
    f'{BACKBONE_PREFIX}cross_attn_projector.': 'it has a second projector, which no model here has',
    f'{BACKBONE_PREFIX}encoder.base_model.': 'its LoRA adapters are not merged',
}


def read_rf_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an RF-DETR and its classes. None if it is another model.

    Raises:
        ConfigError: if the model is not supported, or if the file is damaged.
    """
    if POSITION_TABLE not in published.weights or published.model_type not in ('', 'rf_detr'):
        return None
    for start, why in UNSUPPORTED.items():
        if any(name.startswith(start) for name in published.weights):
            raise ConfigError(f'{why}; give another model')
    num_class_rows, dims = published.shape('class_embed.weight')
    scales, has_masks = map_scales(published), MASK_BIAS in published.weights
    # A file of `rfdetr` has no config.json.
    is_transformers = bool(published.model_type)
    if is_transformers:
        names = names_of_all_rows(published, num_class_rows)
        name = f'RfDetrFor{"InstanceSegmentation" if has_masks else "ObjectDetection"}'
        config = published.described_by(RF_DETR_KIND, name)
        if config is None:  # another class of transformers, such as one for keypoints
            return None
        settings = read_transformers(published, config, dims, len(scales))
        max_boxes = None  # transformers' config has no num_select
    else:
        names = stated_names(published)  # files of `rfdetr` have one more row
        config = roboflow_settings(published)
        settings = read_roboflow(published, config, dims, len(scales))
        max_boxes = config.get('num_select', PositiveInt | None)
    classes = DetectorClasses(num_class_rows, names)
    head = _head(published, config, settings, dims, len(scales))
    head |= dict(
        num_classes=len(classes.names),
        unused_rows=classes.unused,
        # Only Roboflow's code lets positions without a valid anchor propose an empty box.
        empty_proposals=not is_transformers,
    )
    model = dict(
        type='SingleStageDetector',
        backbone=settings.backbone,
        neck=_neck(published, config, settings, dims, scales),
        bbox_head=head,
        test_cfg=dict(max_per_img=max_boxes or head['num_queries']),
    )
    pixels = published.pixels(settings.size)
    return detector_settings(model, classes.names, masks=has_masks, **pixels), classes.names


def _head(
    published: Published, config: ForeignConfig, settings: RFDETRSettings, dims: int, levels: int
) -> Section:
    """The head without the arguments about classes."""
    groups = published.count('transformer.enc_output.')
    queries = published.shape('refpoint_embed.weight')[0] // max(groups, 1)
    config.check_agreement(
        d_model=dims,
        hidden_dim=dims,
        num_queries=queries,
        group_detr=groups,
        num_feature_levels=levels,
    )
    head: Section = dict(
        type='vit_plugin.LWDETRHead',
        num_levels=levels,
        embed_dims=dims,
        decoder=settings.decoder,
        num_groups=groups,
        num_queries=queries,
    )
    if MASK_BIAS in published.weights:
        scale = _mask_scale(published, config, dims, settings.backbone['arch']['patch_size'])
        return dict(head, type='vit_plugin.RFDETRSegHead', mask_scale=scale)
    config.ignore(
        'mask_downsample_ratio', 'segmentation_head_activation_function', 'intermediate_size'
    )
    return head


def _neck(
    published: Published,
    config: ForeignConfig,
    settings: RFDETRSettings,
    dims: int,
    scales: Sequence[float],
) -> Section:
    """The projector from the maps of the backbone to those of the decoder."""
    backbone = settings.backbone
    blocks = published.count(f'{BACKBONE_PREFIX}projector.stages.0.0.m.')
    config.check_agreement(c2f_num_blocks=blocks)
    return dict(
        type='vit_plugin.C2fProjector',
        in_channels=[backbone['arch']['embed_dims']] * len(backbone['out_indices']),
        out_channels=dims,
        scales=scales,
        num_blocks=blocks,
        norm_cfg=dict(type='LN2d', eps=settings.eps),
        widest=None,  # never halve wide maps first
    )


def _mask_scale(published: Published, config: ForeignConfig, dims: int, patch: int) -> float:
    """The scale of the masks' map, relative to the map of patches."""
    hidden = published.shape(MASK_MLP)[0]
    config.check_agreement(intermediate_size=hidden)
    if hidden != 4 * dims:
        raise config.unsupported('intermediate_size', why=f'where {4 * dims} are computed here')
    return patch / config.get('mask_downsample_ratio', PositiveInt)

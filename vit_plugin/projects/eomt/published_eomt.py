"""EoMT in the form of transformers: semantic, instance and panoptic masks."""

from collections.abc import Mapping

from mmengine.logging import print_log

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.registry import needed_class
from vit_plugin.weights.published import (
    DEFAULT_NAME,
    Published,
    detector_settings,
    filled,
    segmentor_settings,
)
from vit_plugin.weights.traits import is_gated

from .eomt_model import instances

KNOWN = {
    80: 'mmdet.datasets.coco:CocoDataset',
    133: 'mmdet.datasets.coco_panoptic:CocoPanopticDataset',
    150: 'mmseg.datasets.ade:ADE20KDataset',
}
SCENES, THINGS = 133, 80  # COCO's panoptic classes, and how many of them are things


def eomt(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an EoMT and its classes. None if it is another model.

    Its preprocessor says which masks it is for: it cuts images into squares for semantic masks, and
    pads them for the others.

    Raises:
        ConfigError: if it is one that cannot be built here.
    """
    if published.kind not in ('eomt', 'eomt_dinov3'):
        return None
    rows = published.shape('class_predictor.weight')[0] - 1  # the last is no object
    classes = _classes(published.names, rows)
    backbone = _backbone(published, rows)
    side = backbone['img_size']
    pixels = published.pixels(side)
    if published.processor.get('do_split_image'):
        model: Section = dict(
            type='EncoderDecoder',
            backbone=backbone,
            decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=rows),
            test_cfg=dict(mode='slide', crop_size=(side, side), stride=(2 * side // 3,) * 2),
        )
        return segmentor_settings(model, classes, **pixels), classes
    things = min(rows, THINGS)
    if rows not in (things, SCENES):
        raise ConfigError(
            f'its config does not say which of its {rows} classes are things; give one with '
            "COCO's classes, or one for semantic masks"
        )
    model = instances(backbone, num_things_classes=things, num_stuff_classes=rows - things)
    return detector_settings(model, classes, padded=side, masks=things == rows, **pixels), classes


def _classes(names: Mapping[int, str], rows: int) -> list[str]:
    """The names that are told; of as many without one as a data set has, its own, which is said."""
    known = all(name.startswith(DEFAULT_NAME) for name in names.values()) and KNOWN.get(rows)
    if known:
        print_log(
            f'The file names no classes; its {rows} are taken as those of {known}.', 'current'
        )
        return list(needed_class('the names of classes', known).METAINFO['classes'])
    return [names.get(i, f'class {i}') for i in range(rows)]


def _backbone(published: Published, rows: int) -> Section:
    """The backbone with its queries."""
    if is_gated(published.ours):
        raise ConfigError('its MLPs have gates, as those of the largest models; give a smaller one')
    is_v3 = published.kind == 'eomt_dinov3'
    return dict(
        published.vit(filled(published.config, dict(image_size=640)), num_heads=0),
        type='vit_plugin.EoMT',
        num_classes=rows,
        num_queries=published.shape('query.weight')[0],
        num_blocks=published.shape('attn_mask_probs')[0],
        encoder=published.encoder(),
        pos_embed=published.rotary() if is_v3 else dict(prefix_rows=False),
    )

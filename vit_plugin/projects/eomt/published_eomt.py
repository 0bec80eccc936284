"""EoMT in the form of transformers: semantic, instance and panoptic masks."""

from mmengine.logging import print_log

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.registry import needed_class
from vit_plugin.weights.published import (
    DEFAULT_NAME,
    Classes,
    Published,
    detector_settings,
    filled,
    segmentor_settings,
)

from .eomt_model import instances

KNOWN = {
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
    config = filled(published.config, dict(image_size=640, hidden_act='gelu'))
    if config['hidden_act'] != 'gelu':  # as in the head of the masks
        raise ConfigError(f'its activation is {config["hidden_act"]}, not gelu; give another')
    backbone = dict(
        published.vit(config, num_heads=0),
        type='vit_plugin.EoMT',
        num_classes=rows,
        num_queries=published.shape('query.weight')[0],
        num_blocks=published.shape('attn_mask_probs')[0],
        encoder=published.encoder(),
        pos_embed=dict(prefix_rows=False) if published.kind == 'eomt' else published.rotary(),
    )
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


def _classes(names: dict[int, str], rows: int) -> list[str]:
    """The names that are told; of as many without one as a data set has, its own, which is said."""
    known = all(name.startswith(DEFAULT_NAME) for name in names.values()) and KNOWN.get(rows)
    if known:
        print_log(
            f'The file names no classes; its {rows} are taken as those of {known}.', 'current'
        )
        return list(needed_class('the names of classes', known).METAINFO['classes'])
    if rows == THINGS and not names:
        return Classes(rows, names).names
    return [names.get(i, f'class {i}') for i in range(rows)]

"""Read EoMT in the format of transformers, for semantic, instance and panoptic segmentation.

The result is the config of the same model here. Each field of the ``config.json`` has to be read,
required to have a supported value, compared with the weights, or ignored:
:class:`~vit_plugin.weights.foreign_config.ForeignConfig` rejects others.
"""

from mmengine.logging import print_log

from vit_plugin.arguments.fields import Positive, PositiveInt, Section
from vit_plugin.errors import ConfigError
from vit_plugin.registry import needed_class
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published, are_default_names
from vit_plugin.weights.published_encoder import encoder_section
from vit_plugin.weights.published_positions import dinov3_rotary
from vit_plugin.weights.published_settings import detector_settings, segmentor_settings

from .eomt_kinds import EOMT_DINOV3_KIND, EOMT_KIND, ROPE_KIND
from .eomt_model import eomt_mask2former
from .mask_queries import doublings

# Number of classes -> the data set whose class names are taken if a file states none.
DATA_SETS = {
    80: 'mmdet.datasets.coco:CocoDataset',
    133: 'mmdet.datasets.coco_panoptic:CocoPanopticDataset',
    150: 'mmseg.datasets.ade:ADE20KDataset',
}
# The number of classes of COCO's panoptic task, and of things among them, which come first.
NUM_COCO_CLASSES, NUM_COCO_THINGS = 133, 80


def read_eomt(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an EoMT and its classes. None if it is another model.

    The config does not state the task. The preprocessor shows it: it splits images into squares for
    semantic segmentation, and pads them otherwise. Panoptic models are recognized by the number of
    COCO's classes.

    Raises:
        ConfigError: if the model is not supported, or if its task is not clear.
    """
    if published.model_type not in ('eomt', 'eomt_dinov3'):
        return None
    rows = published.shape('class_predictor.weight')[0] - 1  # the last row is "no object"
    classes = _class_names(published.names, rows)
    has_position_table = published.model_type == 'eomt'
    name = f'Eomt{"" if has_position_table else "Dinov3"}ForUniversalSegmentation'
    config = published.described_by(EOMT_KIND if has_position_table else EOMT_DINOV3_KIND, name)
    if config is None:
        return None
    backbone = _backbone(published, config, rows)
    side = backbone['img_size']
    pixels = published.pixels(side)
    if published.processor.get('do_split_image'):
        model: Section = dict(
            type='EncoderDecoder',
            backbone=backbone,
            decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=rows),
            # Sliding-window inference, with windows that overlap by a third.
            test_cfg=dict(mode='slide', crop_size=(side, side), stride=(2 * side // 3,) * 2),
        )
        return segmentor_settings(model, classes, **pixels), classes
    things = min(rows, NUM_COCO_THINGS)
    if rows not in (things, NUM_COCO_CLASSES):
        raise ConfigError(
            f'its config does not say which of its {rows} classes are things; give one with '
            "COCO's classes, or one for semantic masks"
        )
    model = eomt_mask2former(backbone, num_things_classes=things, num_stuff_classes=rows - things)
    settings = detector_settings(model, classes, pad_divisor=side, masks=things == rows, **pixels)
    return settings, classes


def _backbone(published: Published, config: ForeignConfig, rows: int) -> Section:
    """The config of an ``EoMT`` with this many classes."""
    config.get('image_size', PositiveInt)  # an error for a pair; transformers only takes squares
    config.require('hidden_act', 'gelu', 'gelu_python')  # also the activation of the mask head
    queries, blocks = (published.shape(name)[0] for name in ('query.weight', 'attn_mask_probs'))
    backbone = encoder_section(published, config)
    config.check_agreement(
        num_queries=queries,
        num_blocks=blocks,
        num_upscale_blocks=published.count('upscale_block.block.'),
    )
    config.require('num_upscale_blocks', doublings(backbone['arch']['patch_size']))
    # transformers takes only images of the table's size. The authors' code resamples the table as
    # timm does.
    table = dict(prefix_rows=False, interpolate_mode='bicubic')
    return dict(
        backbone,
        type='vit_plugin.EoMT',
        num_classes=rows,
        num_queries=queries,
        num_blocks=blocks,
        pos_embed=table if published.model_type == 'eomt' else _rotary(config),
    )


def _rotary(config: ForeignConfig) -> Section:
    """The rotary positions.

    They are stated in ``rope_parameters``, or in files of transformers before 5.0 in
    ``rope_theta``.
    """
    rope = config.part('rope_parameters', {'': ROPE_KIND}, {})
    if rope.get('rope_theta', Positive | None) is None:
        return dinov3_rotary(config)
    config.ignore('rope_theta')
    return dinov3_rotary(rope)


def _class_names(names: dict[int, str], rows: int) -> list[str]:
    """The class names in the file, or if it has none, those of a data set with ``rows`` classes.

    The second case is logged. Rows without any name get their number.
    """
    data_set = DATA_SETS.get(rows)
    if data_set and are_default_names(names.values()):
        print_log(
            f'The file names no classes; its {rows} are taken as those of {data_set}.', 'current'
        )
        return list(needed_class('the names of classes', data_set).METAINFO['classes'])
    return [names.get(i, f'class {i}') for i in range(rows)]

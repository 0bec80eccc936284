"""Read RT-DETR and RT-DETRv2 as transformers saves them.

``published_d_fine.py`` explains how each field of the config must be touched.
"""

from collections.abc import Sequence

from vit_plugin.arguments.fields import Count, Positive, Section
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.transformers_config import inner_backbone, output_stages

from .d_fine_kinds import RESNET_D50, RESNET_D_KIND, RT_DETR_KIND, RT_DETR_V2_KIND
from .published_d_fine import detector_config, hybrid_encoder
from .published_fine_head import convert_head

# ``model_type`` -> the fields of the config, and the supported class.
RT_DETR_KINDS = {
    'rt_detr': (RT_DETR_KIND, 'RTDetrForObjectDetection'),
    'rt_detr_v2': (RT_DETR_V2_KIND, 'RTDetrV2ForObjectDetection'),
}
# (blocks per stage, whether they are bottlenecks) -> depth of the ResNet.
RESNET_LAYERS: dict[tuple[tuple[int, ...], bool], int] = {
    ((2, 2, 2, 2), False): 18,
    ((3, 4, 6, 3), False): 34,
    ((3, 4, 6, 3), True): 50,
    ((3, 4, 23, 3), True): 101,
}


def rt_detr(published: Published) -> tuple[Section, list[str]] | None:
    """The config of an RT-DETR, and the names of its classes. None if it is another model.

    Raises:
        ConfigError: if the config contradicts the weights, or describes an unsupported model.
    """
    if published.model_type not in RT_DETR_KINDS:
        return None
    kind, class_name = RT_DETR_KINDS[published.model_type]
    config = published.described_by(kind, class_name)
    if config is None:
        return None
    backbone, channels = _resnet(
        inner_backbone(config, {'rt_detr_resnet': RESNET_D_KIND}, RESNET_D50)
    )
    backbone['frozen_norms'] = config['freeze_backbone_batch_norms']
    config.require('decoder_activation_function', 'relu')
    expansion = config.get('hidden_expansion', Positive)
    neck = hybrid_encoder(config, channels, dict(kind='csp', expansion=expansion))
    head, classes = convert_head(published, config, len(channels), 'rt_detr')
    if published.model_type == 'rt_detr_v2':
        config.require('decoder_n_levels', len(channels))
    model = dict(type='SingleStageDetector', backbone=backbone, neck=neck, bbox_head=head)
    return detector_config(published, model, classes), classes


def _resnet(config: ForeignConfig) -> tuple[Section, list[int]]:
    """A ResNet-D as backbone, and the channels of the maps that it returns."""
    depths = tuple(config.get('depths', Sequence[Count]))
    is_bottleneck = config['layer_type'] == 'bottleneck'
    if (depths, is_bottleneck) not in RESNET_LAYERS:
        raise config.unsupported('depths', 'layer_type')
    widths = [(256 if is_bottleneck else 64) * 2**i for i in range(len(depths))]
    config.require('hidden_sizes', widths)
    for name in ('embedding_size', 'num_channels', 'hidden_act'):
        config.require(name, config.kind.defaults[name])
    for name in ('downsample_in_first_stage', 'downsample_in_bottleneck'):
        config.require(name, False)
    # Each stage counts as a block, and outputs as the number of stages before them.
    indices = [before - 1 for before in output_stages(config, len(depths))]
    backbone = dict(
        type='vit_plugin.ResNetD', depth=RESNET_LAYERS[depths, is_bottleneck], out_indices=indices
    )
    return backbone, [widths[i] for i in indices]

"""Read the ResNet of a DETR in transformers' format: one of timm, by its config or its name."""

from collections.abc import Sequence

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.transformers_config import inner_backbone

from .detr_kinds import TIMM_BACKBONE_KIND

# timm's names of the maps that a ResNet returns.
RESNET_STAGES = ['act1', 'layer1', 'layer2', 'layer3', 'layer4']
DILATABLE_DEPTHS = (50, 101, 152)  # that `FrozenResNet` can dilate (bottlenecks only)
# (blocks per stage, whether they are bottlenecks) -> depth of the ResNet.
RESNET_DEPTHS: dict[tuple[tuple[int, ...], bool], int] = {
    ((2, 2, 2, 2), False): 18,
    ((3, 4, 6, 3), False): 34,
    ((3, 4, 6, 3), True): 50,
    ((3, 4, 23, 3), True): 101,
    ((3, 8, 36, 3), True): 152,
}


def read_resnet(
    published: Published,
    config: ForeignConfig,
    timm_config: ForeignConfig | None,
    stages: Sequence[int],
) -> Section:
    """The backbone.

    Args:
        published: the weights.
        config: the config of the detector.
        timm_config: see :func:`find_timm_config`.
        stages: the stages, from 0, whose maps the detector reads.
    """
    blocks = tuple(published.count(f'backbone.layer{i}.') for i in range(1, 5))
    depth = RESNET_DEPTHS.get((blocks, 'backbone.layer1.0.conv3.weight' in published.ours))
    if depth is None:
        raise ConfigError(f'its backbone is not a known ResNet, with {blocks} blocks; give another')
    return dict(
        type='vit_plugin.FrozenResNet',
        depth=depth,
        out_indices=list(stages),
        dilated=_is_dilated(config, timm_config, depth, [i + 1 for i in stages]),
    )


def find_timm_config(config: ForeignConfig) -> ForeignConfig | None:
    """The config of the backbone, a timm ResNet.

    None if only its name is given, as in files of 4.x.
    """
    if config.content.get('backbone_config') is None:
        config.require('use_timm_backbone', True, None)
        return None
    return inner_backbone(config, {'timm_backbone': TIMM_BACKBONE_KIND}, {})


def _is_dilated(
    config: ForeignConfig, timm_config: ForeignConfig | None, depth: int, stages: list[int]
) -> bool:
    """Whether the last stage keeps the stride of the previous one.

    Args:
        config: the config of the detector.
        timm_config: see :func:`find_timm_config`.
        depth: depth of the ResNet, by its weights.
        stages: the stages, from 1, whose maps the detector reads.
    """
    config.require('num_channels', 3)
    if timm_config is None:
        config.require('backbone', None, f'resnet{depth}')
        config.require('backbone_kwargs', None, {})
        return bool(config.get('dilation', bool | None))
    config.ignore('dilation', 'backbone', 'use_timm_backbone')
    if str(timm_config.get('backbone', str | None)).partition('.')[0] != f'resnet{depth}':
        raise timm_config.unsupported(
            'backbone', why=f'where its weights are those of a resnet{depth}'
        )
    returned = [
        i % len(RESNET_STAGES) for i in timm_config.get('out_indices', Sequence[int] | None) or [-1]
    ]
    # DETR uses only the last of the returned maps.
    if (returned[-1:] if stages == [4] else returned) != stages:
        raise timm_config.unsupported('out_indices', why=f'where the maps {stages} are read')
    timm_config.check_agreement(
        stage_names=RESNET_STAGES, out_features=[RESNET_STAGES[i] for i in returned]
    )
    timm_config.require('output_stride', None, 16, 32)
    dilated = timm_config.get('output_stride', int | None) == 16
    if dilated and depth not in DILATABLE_DEPTHS:
        raise timm_config.unsupported(
            'output_stride', why=f'which a resnet{depth} here does not have'
        )
    return dilated

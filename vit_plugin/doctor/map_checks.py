"""Check whether the components of a model fit together.

Each public function is a check of :data:`.checks.CHECKS`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from vit_plugin.config.channels import MetaOutputs, check_channels, iter_components
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.outputs import MAP_OUT_TYPES
from vit_plugin.models.protocol import HasStrides

from .examined import ExaminedConfig, Faults

# Necks and heads that expect feature maps whose resolution halves from one to the next.
PYRAMID_CONSUMERS = (
    'BFP', 'ChannelMapper', 'FPN', 'FPNHead', 'FPN_CARAFE', 'HRFPN', 'LRASPPHead',
    'MSDeformAttnPixelDecoder', 'NASFPN', 'PAFPN', 'SegformerHead', 'UPerHead', 'YOLOXPAFPN',
)  # fmt: skip


def model_build_error(examined: ExaminedConfig) -> Faults:
    """Report why the model cannot be built."""
    if examined.build_error:
        yield f'the model cannot be built: {examined.build_error}', ''


def mismatched_channels(examined: ExaminedConfig) -> Faults:
    """Find channels or strides that a component does not take."""
    if examined.model is None:
        return
    try:
        with examined.build_context():
            check_channels(examined.model_config)
    except ConfigError as error:
        yield f'{error}', ''


def one_resolution(examined: ExaminedConfig) -> Faults:
    """Find feature maps of one stride where a pyramid is expected."""
    backbone: Any = getattr(examined.model, 'backbone', None)
    if (
        not isinstance(backbone, HasStrides)
        or getattr(backbone, 'out_type', '') not in MAP_OUT_TYPES
    ):
        return
    outputs = MetaOutputs.of_backbone(backbone)
    for field, component, inputs in _iter_consumers(examined, outputs):
        strides = inputs.strides
        indices = component.get('in_index')
        indices = indices if isinstance(indices, (list, tuple)) else range(len(strides))
        strides = [strides[i] for i in indices if -len(strides) <= i < len(strides)]
        class_name = str(component.get('type')).rpartition('.')[2]
        if class_name in PYRAMID_CONSUMERS and len(strides) > 1 and len(set(strides)) == 1:
            yield (
                f'{field} ({class_name}) takes a pyramid, and its {len(strides)} maps all have the '
                f'stride {strides[0]}',
                "take neck=dict(type='vit_plugin.SimpleFPN'), the backbone 'vit_plugin.ViTAdapter' "
                "or, of a hybrid, out_type='pyramid'",
            )


def _iter_consumers(
    examined: ExaminedConfig, outputs: MetaOutputs
) -> Iterator[tuple[str, Mapping[str, Any], MetaOutputs]]:
    """The place, config and inputs of each neck and head, up to an unknown neck.

    Args:
        examined: the config.
        outputs: the outputs of the backbone.
    """
    for field, neck in iter_components(examined.model_config, 'neck'):
        yield field, neck, outputs
        with examined.build_context():
            neck_outputs = outputs.through(neck)
        if neck_outputs is None:
            return
        outputs = neck_outputs
    for name in examined.model_config:
        if name.endswith('head'):
            for field, head in iter_components(examined.model_config, name):
                yield field, head, outputs

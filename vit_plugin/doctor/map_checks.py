"""Check whether the components of a model fit together."""

from collections.abc import Iterator, Mapping
from typing import Any

from vit_plugin.config.channels import MetaOutputs, check_channels, iter_components
from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.outputs import MAP_OUT_TYPES
from vit_plugin.models.protocol import HasStrides

from .examined import Examined, Findings

# Necks that halve the resolution from map to map, or expect that of their input.
PYRAMIDS = {
    *('FPN', 'PAFPN', 'FPN_CARAFE', 'NASFPN', 'BFP', 'HRFPN', 'ChannelMapper', 'YOLOXPAFPN'),
    *('UPerHead', 'FPNHead', 'SegformerHead', 'LRASPPHead', 'MSDeformAttnPixelDecoder'),
}


def built(examined: Examined) -> Findings:
    """Report why the model cannot be built."""
    if examined.build_error:
        yield f'the model cannot be built: {examined.build_error}', ''


def fit(examined: Examined) -> Findings:
    """Find channels or strides that a component does not take."""
    if examined.model is None:
        return
    try:
        with examined.building():
            check_channels(examined.model_config)
    except ConfigError as error:
        yield f'{error}', ''


def one_resolution(examined: Examined) -> Findings:
    """Find maps of one stride where a pyramid is expected."""
    backbone: Any = getattr(examined.model, 'backbone', None)
    if (
        not isinstance(backbone, HasStrides)
        or getattr(backbone, 'out_type', '') not in MAP_OUT_TYPES
    ):
        return
    outputs = MetaOutputs.of(backbone)
    for field, part, given in _takers(examined, outputs):
        strides = given.strides
        taken = part.get('in_index')
        taken = taken if isinstance(taken, (list, tuple)) else range(len(strides))
        strides = [strides[i] for i in taken if -len(strides) <= i < len(strides)]
        kind = str(part.get('type')).rpartition('.')[2]
        if kind in PYRAMIDS and len(strides) > 1 and len({*strides}) == 1:
            yield (
                f'{field} ({kind}) takes a pyramid, and its {len(strides)} maps all have the '
                f'stride {strides[0]}',
                "take neck=dict(type='vit_plugin.SimpleFPN'), the backbone 'vit_plugin.ViTAdapter' "
                "or, of a hybrid, out_type='pyramid'",
            )


def _takers(
    examined: Examined, outputs: MetaOutputs
) -> Iterator[tuple[str, Mapping[str, Any], MetaOutputs]]:
    """Necks and heads with their places, and their inputs."""
    for field, neck in iter_components(examined.model_config, 'neck'):
        yield field, neck, outputs
        with examined.building():
            made = outputs.through(neck)
        if made is None:
            return
        outputs = made
    for name in examined.model_config:
        for field, head in (
            iter_components(examined.model_config, name) if name.endswith('head') else ()
        ):
            yield field, head, outputs

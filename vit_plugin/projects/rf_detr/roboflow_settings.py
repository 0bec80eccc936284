"""The settings of an RF-DETR in a file of Roboflow, most of which only weight shapes show."""

from collections.abc import Sequence
from typing import NamedTuple

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_encoder import encoder_section

from .rf_detr_kinds import ROBOFLOW_KIND
from .rf_detr_settings import MASK_BIAS, RFDETRSettings, add_windows, decoder_section, map_scales

SELF_DIMS, CROSS_DIMS = 32, 16  # channels per head of self- and cross-attention in the decoder
ROBOFLOW_SCALES = {'P3': 2, 'P4': 1, 'P5': 0.5}  # Roboflow's names of the map scales
ROBOFLOW_EPS = 1e-6  # eps of the projector's norms; transformers has another default
# Values of Roboflow's `encoder` that are built here; the sizes follow from the shapes.
ROBOFLOW_ENCODERS = (None, 'dinov2_windowed_small', 'dinov2_windowed_base')


class Trunk(NamedTuple):
    """Settings of a backbone in Roboflow's files that its shapes do not show.

    Attributes:
        stages: numbers of blocks after which there is an output. The block after each of these
            outputs, whose index is the same number, has global attention.
        windows: windows along a side.
        resolution: image side in pixels. None: that of the position table.
    """

    stages: Sequence[int] = (3, 6, 9, 12)
    windows: int = 2
    resolution: int | None = None


# A published backbone is recognized by its patch size in pixels and the side of its position table
# in patches. All that are not listed have `Trunk()`.
TRUNKS = {
    (14, 37): Trunk((2, 5, 8, 11), 4, 560),  # Base, and Large of 2025
    (12, 26): Trunk(windows=1),  # Seg Nano
    (20, 35): Trunk(windows=1),  # XL
}


def roboflow_settings(published: Published) -> ForeignConfig:
    """The settings of the model in a file of ``rfdetr``.

    The file has them among the arguments of the training (``args``), which are dropped, and in
    ``model_config``. An unknown entry of ``model_config`` is kept, so that it is reported.
    """
    model_config = published.saved['model_config']
    known = {
        name: value
        for name, value in published.settings.items()
        if name in ROBOFLOW_KIND.defaults or name in model_config
    }
    config = ForeignConfig(known, ROBOFLOW_KIND, 'its saved config')
    published.read_configs.append(config)  # entries left unread become an error, as in described_by
    return config


def read_roboflow(
    published: Published, config: ForeignConfig, dims: int, num_levels: int
) -> RFDETRSettings:
    """Read a model in a file of ``rfdetr``. See :func:`~.rf_detr_settings.read_transformers`."""
    backbone = encoder_section(published)
    patch, side = backbone['arch']['patch_size'], backbone['img_size']
    trunk = TRUNKS.get((patch, side // patch), Trunk())
    stages = config.get('out_feature_indexes', Sequence[PositiveInt] | None) or trunk.stages
    layers = backbone['arch']['num_layers']
    if [*stages] != sorted({*stages}) or stages[-1] > layers:
        raise config.unsupported(
            'out_feature_indexes',
            why=f'where up to {layers} blocks in ascending order are expected',
        )
    windowed = [i for i in range(stages[-1] + 1) if i not in stages]
    config.require('window_block_indexes', None, windowed)
    config.require('encoder', *ROBOFLOW_ENCODERS)
    windows = config.get('num_windows', PositiveInt | None) or trunk.windows
    add_windows(backbone, stages, windows, windowed)
    heads, cross_heads = (
        config.get(name, PositiveInt | None) or dims // channels
        for name, channels in (('sa_nheads', SELF_DIMS), ('ca_nheads', CROSS_DIMS))
    )
    decoder = decoder_section(published, heads, cross_heads, num_levels)
    names = config.get('projector_scale', Sequence[str] | None)
    if names is not None and [ROBOFLOW_SCALES.get(name) for name in names] != map_scales(published):
        raise config.unsupported('projector_scale', why='but its weights show others')
    config.check_agreement(
        patch_size=patch,
        positional_encoding_size=side // patch,
        segmentation_head=MASK_BIAS in published.weights,
        dec_layers=decoder['num_layers'],
        dec_n_points=decoder['num_points'],
        dim_feedforward=decoder['feedforward_channels'],
    )
    size = config.get('resolution', PositiveInt | None) or trunk.resolution or side
    return RFDETRSettings(backbone, size, decoder, ROBOFLOW_EPS)

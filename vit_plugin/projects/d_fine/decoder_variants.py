"""The table of decoders: how those of RT-DETR, D-FINE, DEIMv2 and ECDet differ."""

from typing import NamedTuple


class Variant(NamedTuple):
    """The differences between the decoders of these papers.

    Attributes:
        rms_norm: whether layers have RMSNorm and SwiGLU in place of LayerNorm and an MLP.
        position_layers: layers of the MLP from boxes to position embeddings.
        position_width: its width, relative to the queries.
        position_follows_boxes: whether position embeddings follow the boxes of each layer, instead
            of staying at the proposals.
        projects_proposals: whether map elements are projected and normed before they propose boxes.
        projects_maps: whether cross-attention projects its values and outputs, and whether maps are
            projected even if they have the width of the queries.
        gated: default of ``gated`` in :class:`~.fine_decoder.FineDecoderCfg`.
        act: type of the activations of MLPs.
    """

    rms_norm: bool = False
    position_layers: int = 2
    position_width: int = 2
    position_follows_boxes: bool = True
    projects_proposals: bool = True
    projects_maps: bool = False
    gated: bool = True
    act: str = 'ReLU'


_ECDET = Variant(
    position_layers=3,
    position_width=1,
    position_follows_boxes=False,
    projects_proposals=False,
    act='SiLU',
)
DECODER_VARIANTS = {
    'rt_detr': Variant(projects_maps=True, gated=False),  # arXiv:2304.08069
    'd_fine': Variant(),  # arXiv:2410.13842, as transformers has it
    # RT-DETRv2 and D-FINE, trained by DEIM (arXiv:2412.04234).
    'rt_detr_deim': Variant(
        position_layers=3, position_width=1, projects_maps=True, gated=False, act='SiLU'
    ),
    'd_fine_deim': Variant(act='SiLU'),
    'ecdet': _ECDET,  # arXiv:2603.18739
    'deimv2': _ECDET._replace(rms_norm=True),  # arXiv:2509.20787
    # In transformers, positions follow the boxes, elements are projected, and MLPs have ReLU.
    'deimv2_transformers': Variant(rms_norm=True, position_layers=3, position_width=1),
}

"""The variants of ECViT, the transformer of ECDet (arXiv:2603.18739).

Widths are from its code, ``ecdetseg/configs/ecdet``.
"""

from vit_plugin.arch import Arch

EC_BLOCKS, EC_HEAD_DIMS = 12, 64  # blocks, and channels of an attention head


def _variant(width: int, mlp_ratio: int = 4) -> Arch:
    """A variant: a stem of four convolutions, one register, rotary positions, no final norm."""
    stem = dict(
        type='ConvEmbed',
        channels=(width // 8, width // 4, width // 2, width),
        strides=(2,) * 4,
        kernel_sizes=(3,) * 4,
        conv_act='ReLU',
    )
    arguments = dict(
        pos_embed=dict(type='none', rotary=dict(form='centred', planes='halves')),
        with_cls_token=False,
        encoder=dict(reg_token=1, final_norm=False),
        numerics='timm',
        out_type='featmap',
    )
    return Arch(width, EC_BLOCKS, width // EC_HEAD_DIMS, mlp_ratio * width, stem, arguments)


EC_VIT_T, EC_VIT_T_PLUS = _variant(192), _variant(256)
EC_VIT_S, EC_VIT_S_PLUS = _variant(384), _variant(384, 6)

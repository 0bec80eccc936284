"""Small backbones of all kinds that visualizations must support, with 4 x 4 patches."""

from vit_plugin.models import VisionTransformer

ROTARY = dict(type='none', rotary=dict(form='centred'))
# Arguments on top of those of the fixture `tiny`, or `tiny_hybrid` for the hybrid.
KINDS: dict[str, dict] = {
    'plain': dict(),
    'registers': dict(encoder=dict(reg_token=3, qk_norm=True)),
    'distilled': dict(encoder=dict(dist_token=1), out_type='raw'),
    'relative': dict(pos_embed='relative'),
    'rotary': dict(pos_embed=ROTARY),
    'rotary_mixed': dict(pos_embed=dict(type='none', rotary=dict(form='mixed'))),
    'grouped': dict(encoder=dict(num_kv_heads=1)),
    'qv_bias': dict(encoder=dict(qkv_bias='qv')),
    'attn_norm': dict(encoder=dict(attn_norm=True)),
    'windows': dict(
        encoder=dict(window=dict(size=2, global_blocks=[1])),
        with_cls_token=False,
        out_type='featmap',
    ),
    'relative_windows': dict(
        encoder=dict(window=dict(size=2)),
        pos_embed='relative',
        with_cls_token=False,
        out_type='featmap',
    ),
    'rotary_windows': dict(
        encoder=dict(window=dict(size=2)),
        pos_embed=ROTARY,
        with_cls_token=False,
        out_type='avg_featmap',
    ),
    'hybrid': dict(),
}


def build(kind: str, tiny: dict, **more: object) -> VisionTransformer:
    """The model of a kind with the arguments of the fixture ``tiny`` or ``tiny_hybrid``."""
    return VisionTransformer(**{**tiny, **KINDS[kind], **more}).eval()

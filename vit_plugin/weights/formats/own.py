"""Our own names: timm's for the backbone, ``neck.`` and ``head.layers.`` for the rest."""

from ..rules import GRID, Format, same
from .transunet import HEAD

TOKENS = ('cls_token', 'dist_token', 'reg_token', 'pos_embed')
LAYERS = tuple(f'{part}.{{rest}}' for part in ('blocks', 'norm', 'norm_pre', 'patch_embed.proj'))
RESNET = tuple(f'patch_embed.backbone.{part}.{{rest}}' for part in ('stem', 'stages'))

OWN = Format(
    'vit_plugin',
    (
        *same(
            *TOKENS,
            GRID,
            'rope.freqs',
            'norm.{rest}',
            'norm_pre.{rest}',
            'fc_norm.{rest}',
            'blocks.{rest}',
            'patch_embed.{rest}',
            'queries.{rest}',
            'decoder.{rest}',
            'tuning.{rest}',
            'head.layers.{rest}',
            *(f'neck.{part}.{{rest}}' for part in ('attn_pool', 'norm', 'levels', 'extra_levels')),
            'bbox_head.{rest}',
        ),
        *HEAD,
    ),
    ('', 'backbone.'),
    ('head.', 'neck.', 'bbox_head.', 'decode_head.'),
)

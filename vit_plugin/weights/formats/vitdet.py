"""The naming table of ViTDet, as detectron2 and MMDetection save it.

In detectron2 the backbone includes the pyramid (``simfp_``), which is our neck. MMDetection's names
are only read. For the rules see :mod:`vit_plugin.weights.formats`.
"""

from ..rules import Format, Rule, pair, same
from ..traits import EPS_1E_6, GELU, KnownNumerics

# The index of the last resizing layer in each level of detectron2's pyramid, finest level first.
# The third level has no such layer (-1). The next two indices are those of the convolutions.
_LAST_RESIZE = (3, 0, -1, 0)


def _conv_norm(theirs: str, ours: str) -> tuple[Rule, ...]:
    """The rules of a convolution without bias, and its norm."""
    return (
        Rule(f'{theirs}.weight', f'{ours}.conv.weight'),
        *pair(f'{theirs}.norm.', f'{ours}.norm'),
    )


VITDET = Format(
    'vitdet',
    (
        *same('pos_embed', 'blocks.{rest}', 'patch_embed.proj.{rest}'),
        *(
            rule
            for i, last in enumerate(_LAST_RESIZE)
            for k, layer in ((1, 'lateral'), (2, 'output'))
            for rule in _conv_norm(
                f'(backbone.|)simfp_{i + 2}.{last + k}', f'neck.levels.{i}.{layer}'
            )
        ),
        Rule('(backbone.|)simfp_{i+2}.{rest}', 'neck.levels.{i}.resize.{rest}'),
        Rule('neck.fpn{i+1}.{rest}', 'neck.levels.{i}.resize.{rest}', written=False),
        *(
            rule
            for theirs, ours in (('lateral_convs', 'lateral'), ('fpn_convs', 'output'))
            for rule in (
                Rule(
                    f'neck.{theirs}.{{i}}.conv.weight',
                    f'neck.levels.{{i}}.{ours}.conv.weight',
                    written=False,
                ),
                *pair(
                    f'neck.{theirs}.{{i}}.(norm_layer|ln).',
                    f'neck.levels.{{i}}.{ours}.norm',
                    written=False,
                ),
            )
        ),
    ),
    prefixes=('backbone.net.', 'net.', 'backbone.'),
    outside=('backbone.simfp_', 'simfp_', 'neck.'),
    known_numerics=(KnownNumerics(GELU | EPS_1E_6),),
    ignored={
        f'{part}{{rest}}': 'of the detector'
        for part in ('proposal_generator.', 'rpn_head.', 'roi_head', 'pixel_')
    },
)

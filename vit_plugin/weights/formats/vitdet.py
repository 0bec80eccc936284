"""ViTDet of detectron2, whose backbone includes the pyramid, and of MMDetection."""

from ..rules import Format, Rule, pair, same
from ..traits import EPS_1E_6, GELU, KnownNumerics

# The last resizing layer of each level of detectron2's pyramid, from the finest on; two
# convolutions follow it.
_SIMPLE_FPN = (3, 0, -1, 0)

VITDET = Format(
    'vitdet',
    (
        *same('pos_embed', 'blocks.{rest}', 'patch_embed.proj.{rest}'),
        *(
            rule
            for i, last in enumerate(_SIMPLE_FPN)
            for k, layer in ((1, 'lateral'), (2, 'output'))
            for theirs, ours in (
                (f'(backbone.|)simfp_{i + 2}.{last + k}', f'neck.levels.{i}.{layer}'),
            )
            for rule in (
                Rule(f'{theirs}.weight', f'{ours}.conv.weight'),
                *pair(f'{theirs}.norm.', f'{ours}.norm'),
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

"""Rules for the weights of a ViT-Adapter by our names, the authors' and DINOv3's.

DINOv3's file has the adapter and the segmentation head, but not the backbone. The placeholders of a
rule are explained in :mod:`vit_plugin.weights.patterns`.
"""

from vit_plugin.weights.formats.own import LAYER_NAMES, TOKENS
from vit_plugin.weights.rules import GRID, Format, Rule, same

# The modules of the adapter, with the same names in the authors' code and here.
SHARED_MODULES = (
    'spm',
    'level_embed',
    'interactions',
    'up',
    'norm1',
    'norm2',
    'norm3',
    'norm4',
)
# All modules of our ViT-Adapter. The authors' class extends the ViT, so that keys of the ViT have
# no prefix there.
ADAPTER_MODULES = ('backbone', *SHARED_MODULES)

VIT_ADAPTER = Format(
    'vit_adapter',
    (
        # The authors' names of LayerScale, `gamma1` and `gamma_1`, are read; ours are written.
        Rule('(backbone.|)blocks.{i}.gamma(_|){k}', 'blocks.{i}.ls{k}.gamma', written=False),
        *(
            Rule(f'(backbone.|){name}', name)
            for name in (*TOKENS, *LAYER_NAMES, 'patch_embed.{rest}', 'rope.freqs', GRID)
        ),
        *same(
            'level_embed',
            *(f'{part}.{{rest}}' for part in SHARED_MODULES if part != 'level_embed'),
        ),
    ),
    # Within a segmentor of MMSegmentation, and in DINOv3's file.
    prefixes=('', 'backbone.', 'segmentation_model.0.'),
    has_backbone=False,  # the file may be DINOv3's
    ignored={'segmentation_model.1.{rest}': 'belongs to the segmentation head'},
)

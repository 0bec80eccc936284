"""The parameter names of transformers' DPT and Depth Anything, mapped to ours.

Both are a Vision Transformer with DPT's decoder, here ``decode_head``. In a pattern, ``{i}`` is a
number and ``{rest}`` the rest of the name. Each :class:`~vit_plugin.weights.rules.Rule` is used in
both directions, and ``pair`` makes those of a weight and a bias.
"""

from vit_plugin.weights.formats.hugging_face import HF, HF_DINOV2, resnet
from vit_plugin.weights.rules import Format, Rule, pair
from vit_plugin.weights.traits import traits

# A residual unit of the fusion, and the decoder's modules that DPT and Depth Anything share.
_UNIT = 'neck.fusion_stage.layers.{i}.residual_layer{k}'
_NECK = (
    *pair('neck.reassemble_stage.readout_projects.{i}.0.', 'decode_head.reassemble.{i}.read'),
    Rule('neck.reassemble_stage.layers.{i}.{rest}', 'decode_head.reassemble.{i}.{rest}'),
    Rule('neck.convs.{i}.weight', 'decode_head.convs.{i}.weight'),
    *pair('neck.fusion_stage.layers.{i}.projection.', 'decode_head.fusion.{i}.projection'),
    Rule(f'{_UNIT}.convolution{{n}}.{{rest}}', 'decode_head.fusion.{i}.unit{k}.conv{n}.{rest}'),
    Rule(f'{_UNIT}.batch_norm{{n}}.{{rest}}', 'decode_head.fusion.{i}.unit{k}.norm{n}.{rest}'),
)
# Beginnings of the names outside of the transformer, which alone has the format's prefix.
_OUTSIDE = ('neck.', 'head.')

HF_DPT = Format(
    'hf_dpt',
    (
        *_NECK,
        *(
            Rule(f'head.head.{2 * k}.{{rest}}', f'decode_head.conv{k + 1}.{{rest}}')
            for k in range(3)
        ),
        *resnet('embeddings.backbone.bit'),
        *pair(
            'embeddings.projection.',  # a hybrid's; a plain transformer's name is in HF
            'patch_embed.proj',
            written=lambda state: 'hybrid' in traits(state),
        ),
        *HF.rules,
    ),
    prefixes=('dpt.',),
    outside=_OUTSIDE,
    known_numerics=HF.known_numerics,
    ignored={'layernorm.{rest}': 'of the last tokens, which the decoder does not read'},
)

HF_DEPTH_ANYTHING = Format(
    'hf_depth_anything',
    (
        *_NECK,
        Rule('head.conv{i}.{rest}', 'decode_head.conv{i}.{rest}'),
        *HF_DINOV2.rules,
    ),
    prefixes=('backbone.',),
    outside=_OUTSIDE,
    known_numerics=HF_DINOV2.known_numerics,
    ignored=HF_DINOV2.ignored,
)

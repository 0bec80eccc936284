"""The naming table of google-research/vision_transformer and big_vision, which use flax.

For the rules see :mod:`vit_plugin.weights.formats`. flax's arrays have another layout than torch's,
see :class:`~vit_plugin.weights.rules.Transform`.
"""

from ..rules import (
    CONV,
    HEADS_BIAS,
    INTO_HEADS,
    OUT_OF_HEADS,
    TRANSPOSED,
    VECTOR,
    Format,
    Rule,
    pair,
)
from ..traits import AUTHORS_NUMERICS, has_plain_mlps


def _attention(theirs: str, ours: str, **layers: str) -> tuple[Rule, ...]:
    """The rules of an attention.

    Args:
        theirs: their name of the attention.
        ours: our name of it.
        layers: our name of each projection of the inputs -> the names of theirs that it joins,
            separated by spaces.
    """
    return (
        *(
            Rule(
                tuple(f'{theirs}/{name}/{kind}' for name in names.split()),
                f'{ours}.{layer}.{our_kind}',
                transform,
            )
            for layer, names in layers.items()
            for kind, our_kind, transform in (
                ('kernel', 'weight', INTO_HEADS),
                ('bias', 'bias', HEADS_BIAS),
            )
        ),
        Rule(f'{theirs}/out/kernel', f'{ours}.proj.weight', OUT_OF_HEADS),
        Rule(f'{theirs}/out/bias', f'{ours}.proj.bias'),
    )


_BLOCK = 'Transformer/encoderblock_{i}'
# A block of the ResNet, in the authors' names and in ours.
_UNIT, _OUR_UNIT = 'block{i+1}/unit{j+1}', 'patch_embed.backbone.stages.{i}.blocks.{j}'
# In early versions, big_vision's pooling was not a separate module.
_POOL = '(MAPHead_0/|)'

# All versions of google-research/vision_transformer and big_vision. In a choice such as (2|1), the
# name of older files is first: they number all layers in a block, newer ones those of each kind.
# big_vision's arrays of all blocks at once are split before, by `recognition`.
JAX = Format(
    'jax',
    (
        *pair('embedding/', 'patch_embed.proj', kernel='kernel', transform=CONV),
        Rule('cls', 'cls_token'),
        Rule('(Transformer/posembed_input/|Transformer/|)pos_embedding', 'pos_embed'),
        *pair(f'{_BLOCK}/LayerNorm_0/', 'blocks.{i}.norm1', kernel='scale', transform=VECTOR),
        *pair(f'{_BLOCK}/LayerNorm_(2|1)/', 'blocks.{i}.norm2', kernel='scale', transform=VECTOR),
        *_attention(
            f'{_BLOCK}/MultiHeadDotProductAttention_(1|0)',
            'blocks.{i}.attn',
            qkv='query key value',
        ),
        *pair(
            f'{_BLOCK}/MlpBlock_(3|0)/Dense_0/',
            'blocks.{i}.mlp.fc1',
            kernel='kernel',
            transform=TRANSPOSED,
            # The first layer of a gated MLP has no name here, and stays unwritten.
            written=has_plain_mlps,
        ),
        *pair(
            f'{_BLOCK}/MlpBlock_(3|0)/Dense_1/',
            'blocks.{i}.mlp.fc2',
            kernel='kernel',
            transform=TRANSPOSED,
        ),
        *pair('Transformer/encoder_norm/', 'norm', kernel='scale', transform=VECTOR),
        # the ResNet of a hybrid
        Rule('conv_root/kernel', 'patch_embed.backbone.stem.conv.weight', CONV),
        *pair('gn_root/', 'patch_embed.backbone.stem.norm', kernel='scale', transform=VECTOR),
        Rule(f'{_UNIT}/conv_proj/kernel', f'{_OUR_UNIT}.downsample.conv.weight', CONV),
        *pair(
            f'{_UNIT}/gn_proj/', f'{_OUR_UNIT}.downsample.norm', kernel='scale', transform=VECTOR
        ),
        Rule(f'{_UNIT}/conv{{k}}/kernel', f'{_OUR_UNIT}.conv{{k}}.weight', CONV),
        *pair(f'{_UNIT}/gn{{k}}/', f'{_OUR_UNIT}.norm{{k}}', kernel='scale', transform=VECTOR),
        # the parts after the encoder
        Rule(f'{_POOL}probe', 'neck.attn_pool.latent'),
        *_attention(
            f'{_POOL}MultiHeadDotProductAttention_0',
            'neck.attn_pool',
            q='query',
            kv='key value',
        ),
        *pair(f'{_POOL}LayerNorm_0/', 'neck.attn_pool.norm', kernel='scale', transform=VECTOR),
        *pair(
            f'{_POOL}MlpBlock_0/Dense_0/',
            'neck.attn_pool.mlp.fc1',
            kernel='kernel',
            transform=TRANSPOSED,
        ),
        *pair(
            f'{_POOL}MlpBlock_0/Dense_1/',
            'neck.attn_pool.mlp.fc2',
            kernel='kernel',
            transform=TRANSPOSED,
        ),
        *pair('pre_logits/', 'head.layers.pre_logits', kernel='kernel', transform=TRANSPOSED),
        *pair('head/', 'head.layers.head', kernel='kernel', transform=TRANSPOSED),
    ),
    prefixes=('', 'opt/target/', 'params/', 'params/img/'),
    known_numerics=(AUTHORS_NUMERICS,),
    ignored={
        'opt/state/{rest}': 'state of the optimizer',
        'params/txt/{rest}': 'text tower',
        'params/t': 'temperature of the contrastive loss',
        'params/b': 'bias of the contrastive loss',
    },
)

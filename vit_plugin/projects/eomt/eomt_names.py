"""The weight names of EoMT and PMT in the authors' files and in transformers, and ours.

EoMT has queries among the tokens of its encoder. PMT has a frozen encoder, and a decoder with the
queries. A :class:`~vit_plugin.weights.rules.Rule` maps a pattern of their names to a pattern of
ours, and is used to read and to write. The first rule that matches a name is used, so narrow
patterns come before wide ones. Rules with ``written=False`` only read other names for the same.
"""

from typing import Any

from vit_plugin.weights.formats.hugging_face import HF_DINOV2, dinov3, dinov3_block, two_gates
from vit_plugin.weights.formats.own import LAYER_NAMES, TOKENS
from vit_plugin.weights.rules import COMPUTED, POSITION_ROWS, Format, Rule, pair, separate_qkv
from vit_plugin.weights.traits import EPS_1E_5, EPS_1E_6, GELU, KnownNumerics, is_gated

# Names of tensors that may stay unused -> the reason, which a report gives after the name.
_LOSS = {'criterion.empty_weight': 'class weights of the loss, which the head has in its config'}
_UNUSED = {
    **_LOSS,
    'encoder.pixel_(mean|std)': 'the normalization of images, which the preprocessor has',
    'rope.inv_freq': COMPUTED,
    'encoder.backbone.rope_embeddings.inv_freq': COMPUTED,
}


def _queries(prefix: str = '') -> tuple[Rule, ...]:
    """The rules of the queries, which have the authors' names here."""
    return tuple(
        Rule(f'{prefix}{part}', f'queries.{part}')
        for part in (
            'q.weight',
            'class_head.{rest}',
            'mask_head.{rest}',
            'upscale.{rest}',
            'attn_mask_probs',
        )
    )


# The decoder of the authors' PMT. Published files have nothing else.
_DECODER = (
    *_queries('decoder.'),
    Rule('bn.{i}.{rest}', 'decoder.laterals.{i}.bn.{rest}'),
    Rule('decoder.lateral_projections.{i}.{rest}', 'decoder.laterals.{i}.projection.{rest}'),
    Rule('decoder.scalers.{i}', 'decoder.laterals.{i}.scaler'),
    *dinov3_block('decoder.blocks.{i}', 'decoder.blocks.{i}'),
    *pair('decoder.decoder_norm.', 'decoder.norm'),
)


def _authors_format(name: str, *rules: Rule, **fields: Any) -> Format:
    """A format of the authors, with these rules and further arguments of :class:`Format`."""
    return Format(name, rules, prefixes=('network.', ''), ignored=_UNUSED, **fields)


# An encoder of timm, whose names are ours.
_IN_TIMM = tuple(
    Rule(f'encoder.backbone.{name}', name)
    for name in (*TOKENS, *LAYER_NAMES, 'patch_embed.backbone.{rest}')
)
EOMT = _authors_format(
    'eomt', *_IN_TIMM, *_queries(), known_numerics=(KnownNumerics(GELU | EPS_1E_6),)
)
PMT_AUTHORS = _authors_format('pmt', *_IN_TIMM, *_DECODER, has_backbone=False)

_DINOV3 = dinov3(
    'encoder.backbone.(blocks|layer).{i}',
    'encoder.backbone.(patch_embed|embeddings)',
    'encoder.backbone.norm',
)
# EoMT on DINOv3. The authors' files have the differences from DINOv3's weights.
EOMT_DINOV3 = _authors_format(
    'eomt_dinov3', *_DINOV3, *_queries(), known_numerics=(KnownNumerics(EPS_1E_5),)
)
PMT_DINOV3 = _authors_format('pmt_dinov3', *_DINOV3, *_DECODER, has_backbone=False)

# The queries in transformers.
_HF = (
    Rule('query.weight', 'queries.q.weight'),
    *pair('class_predictor.', 'queries.class_head'),
    *(
        Rule(f'mask_head.fc{i + 1}.{{rest}}', f'queries.mask_head.{2 * i}.{{rest}}')
        for i in range(3)
    ),
    Rule('upscale_block.block.{i}.layernorm2d.{rest}', 'queries.upscale.{i}.norm.{rest}'),
    Rule('upscale_block.block.{i}.{rest}', 'queries.upscale.{i}.{rest}'),
    Rule('attn_mask_probs', 'queries.attn_mask_probs'),
)

HF_EOMT = Format(
    'hf_eomt',
    (
        # A gated MLP has the names of three layers, or below of two (`weights_in`, `weights_out`).
        *two_gates('layers.{i}'),
        *pair('layers.{i}.mlp.down_proj.', 'blocks.{i}.mlp.fc2', written=is_gated),
        Rule('embeddings.cls_token', 'cls_token'),
        Rule('embeddings.register_tokens', 'reg_token'),
        Rule('embeddings.position_embeddings.weight', 'pos_embed', POSITION_ROWS),
        *pair('embeddings.patch_embeddings.projection.', 'patch_embed.proj'),
        Rule('layers.{i}.norm{k}.{rest}', 'blocks.{i}.norm{k}.{rest}'),
        Rule('layers.{i}.layer_scale{k}.lambda1', 'blocks.{i}.ls{k}.gamma'),
        Rule('layers.{i}.mlp.fc{k}.{rest}', 'blocks.{i}.mlp.fc{k}.{rest}'),
        Rule('layers.{i}.mlp.weights_in.{rest}', 'blocks.{i}.mlp.fc1.{rest}', written=False),
        Rule('layers.{i}.mlp.weights_out.{rest}', 'blocks.{i}.mlp.fc2.{rest}', written=False),
        *separate_qkv('layers.{i}.attention.', ('q_proj', 'k_proj', 'v_proj')),
        *pair('layers.{i}.attention.out_proj.', 'blocks.{i}.attn.proj'),
        *pair('layernorm.', 'norm'),
        *_HF,
    ),
    known_numerics=HF_DINOV2.known_numerics,
    ignored=_LOSS,
)

HF_EOMT_DINOV3 = Format(
    'hf_eomt_dinov3',
    (*dinov3('layers.{i}', 'embeddings', 'layernorm'), *_HF),
    ignored={
        **_LOSS,
        'embeddings.mask_token': 'the token of masked pre-training',
        'rope_embeddings.inv_freq': COMPUTED,
    },
)

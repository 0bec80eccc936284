"""The tables of EoMT and PMT: their authors' names, and those of transformers' models."""

from vit_plugin.weights.formats.hugging_face import dinov3, dinov3_block, two_gates
from vit_plugin.weights.formats.own import LAYERS, TOKENS
from vit_plugin.weights.rules import (
    COMPUTED,
    TABLE,
    Format,
    Rule,
    pair,
    separate_qkv,
)
from vit_plugin.weights.traits import (
    EPS_1E_5,
    EPS_1E_6,
    GELU,
    SILU,
    Fields,
    KnownNumerics,
    is_gated,
)

_LOSS = {'criterion.empty_weight': 'weights of the loss, which the head has in its config'}
_Q = 'queries'
_UNUSED = {
    **_LOSS,
    'encoder.pixel_(mean|std)': 'of the preprocessor',
    'rope.inv_freq': COMPUTED,
    'encoder.backbone.rope_embeddings.inv_freq': COMPUTED,
}


def _queries(prefix: str = '') -> tuple[Rule, ...]:
    return tuple(
        Rule(f'{prefix}{part}', f'{_Q}.{part}')
        for part in (
            'q.weight',
            'class_head.{rest}',
            'mask_head.{rest}',
            'upscale.{rest}',
            'attn_mask_probs',
        )
    )


def authors_eomt(name: str, encoder: tuple[Rule, ...], numerics: Fields) -> Format:
    """The format of the authors' EoMT with these rules of its encoder."""
    return Format(
        name,
        (*encoder, *_queries()),
        ('network.', ''),
        known_numerics=(KnownNumerics(numerics),),
        ignored=_UNUSED,
    )


def authors_pmt(name: str, encoder: tuple[Rule, ...]) -> Format:
    """The format of the authors' PMT. Their published files have the decoder alone."""
    return Format(
        name,
        (
            *encoder,
            *_queries('decoder.'),
            Rule('bn.{i}.{rest}', 'decoder.laterals.{i}.bn.{rest}'),
            Rule(
                'decoder.lateral_projections.{i}.{rest}', 'decoder.laterals.{i}.projection.{rest}'
            ),
            Rule('decoder.scalers.{i}', 'decoder.laterals.{i}.scaler'),
            *dinov3_block('decoder.blocks.{i}', 'decoder.blocks.{i}'),
            *pair('decoder.decoder_norm.', 'decoder.norm'),
        ),
        ('network.', ''),
        ignored=_UNUSED,
        has_backbone=False,
    )


# On a model of timm.
_IN_TIMM = tuple(
    Rule(f'encoder.backbone.{name}', name)
    for name in (*TOKENS, *LAYERS, 'patch_embed.backbone.{rest}')
)
EOMT = authors_eomt('eomt', _IN_TIMM, GELU | EPS_1E_6)
PMT = authors_pmt('pmt', _IN_TIMM)

_DINOV3 = dinov3(
    'encoder.backbone.(blocks|layer).{i}',
    'encoder.backbone.(patch_embed|embeddings)',
    'encoder.backbone.norm',
)
# Its files have the difference to DINOv3's weights.
EOMT_DINOV3 = authors_eomt('eomt_dinov3', _DINOV3, EPS_1E_5)
PMT_DINOV3 = authors_pmt('pmt_dinov3', _DINOV3)

_HF = (
    Rule('query.weight', f'{_Q}.q.weight'),
    *pair('class_predictor.', f'{_Q}.class_head'),
    *(rule for i in range(3) for rule in pair(f'mask_head.fc{i + 1}.', f'{_Q}.mask_head.{2 * i}')),
    *(
        Rule(f'upscale_block.block.{{i}}.{theirs}.{{rest}}', f'{_Q}.upscale.{{i}}.{ours}.{{rest}}')
        for theirs, ours in (('conv1', 'conv1'), ('conv2', 'conv2'), ('layernorm2d', 'norm'))
    ),
    Rule('attn_mask_probs', f'{_Q}.attn_mask_probs'),
)

_BLOCK = 'layers.{i}'

HF_EOMT = Format(
    'hf_eomt',
    (
        *two_gates(_BLOCK),
        *pair(f'{_BLOCK}.mlp.down_proj.', 'blocks.{i}.mlp.fc2', written=is_gated),
        Rule('embeddings.cls_token', 'cls_token'),
        Rule('embeddings.register_tokens', 'reg_token'),
        Rule('embeddings.position_embeddings.weight', 'pos_embed', TABLE),
        *pair('embeddings.patch_embeddings.projection.', 'patch_embed.proj'),
        *(
            rule
            for k in (1, 2)
            for rule in (
                *pair(f'{_BLOCK}.norm{k}.', f'blocks.{{i}}.norm{k}'),
                Rule(f'{_BLOCK}.layer_scale{k}.lambda1', f'blocks.{{i}}.ls{k}.gamma'),
                *pair(f'{_BLOCK}.mlp.fc{k}.', f'blocks.{{i}}.mlp.fc{k}'),
            )
        ),
        *(
            Rule(
                f'{_BLOCK}.mlp.weights_{part}.{{rest}}',
                f'blocks.{{i}}.mlp.fc{k}.{{rest}}',
                written=False,
            )
            for k, part in ((1, 'in'), (2, 'out'))
        ),
        *separate_qkv(f'{_BLOCK}.attention.', ('q_proj', 'k_proj', 'v_proj')),
        *pair(f'{_BLOCK}.attention.out_proj.', 'blocks.{i}.attn.proj'),
        *pair('layernorm.', 'norm'),
        *_HF,
    ),
    known_numerics=(KnownNumerics(EPS_1E_6), KnownNumerics(GELU, lacking={'gated'}), SILU),
    ignored=_LOSS,
)

HF_EOMT_DINOV3 = Format(
    'hf_eomt_dinov3',
    (*dinov3(_BLOCK, 'embeddings', 'layernorm'), *_HF),
    ignored={
        **_LOSS,
        'embeddings.mask_token': 'of masked pre-training',
        'rope_embeddings.inv_freq': COMPUTED,
    },
)

"""The tables of LW-DETR and RF-DETR in transformers: backbone, projector and decoder of a detector."""

from .claims import EPS_1E_6, GELU, Claim
from .rules import ROW_MORE, Format, Rule, pair, separate_qkv

_H = 'bbox_head.'
_LAYER, _OURS = 'model.decoder.layers.{i}', 'bbox_head.layers.{i}'
_BLOCK = 'encoder.layer.{i}'


def _projector(theirs: str, ours: str) -> tuple[Rule, ...]:
    """The rules of one output of the projector."""
    return (
        Rule(f'{theirs}sampling_layers.{{j}}.layers.{{k}}.{{rest}}', f'{ours}resize.{{j}}.{{k}}.{{rest}}'),
        Rule(f'{theirs}projector_layer.bottlenecks.{{j}}.conv{{k+1}}.{{rest}}',
             f'{ours}c2f.bottlenecks.{{j}}.{{k}}.{{rest}}'),
        Rule(f'{theirs}projector_layer.{{rest}}', f'{ours}c2f.{{rest}}'),
        *pair(f'{theirs}layer_norm.', f'{ours}norm'))


_DECODER = (
    *(Rule(f'model.{theirs}.{{rest}}', f'{_H}{ours}.{{rest}}') for theirs, ours in (
        ('reference_point_embed', 'reference'), ('query_feat', 'content'), ('enc_output', 'proposal_fc'),
        ('enc_output_norm', 'proposal_norm'), ('enc_out_class_embed', 'proposal_cls'),
        ('enc_out_bbox_embed', 'proposal_reg'), ('decoder.layernorm', 'norm'), ('decoder.ref_point_head', 'position'))),
    *(Rule(tuple(f'{_LAYER}.self_attn.{part}_proj.{kind}' for part in 'qkv'), f'{_OURS}.self_attn.in_proj_{kind}')
      for kind in ('weight', 'bias')),
    *(Rule(f'{_LAYER}.{theirs}.{{rest}}', f'{_OURS}.{ours}.{{rest}}') for theirs, ours in (
        ('self_attn.o_proj', 'self_attn.out_proj'), ('self_attn_layer_norm', 'norms.0'),
        ('cross_attn', 'cross_attn'), ('cross_attn_layer_norm', 'norms.1'), ('mlp.fc1', 'mlp.0'),
        ('mlp.fc2', 'mlp.3'), ('layer_norm', 'norms.2'))),
    Rule('class_embed.{rest}', f'{_H}fc_cls.{{rest}}'),
    Rule('bbox_embed.{rest}', f'{_H}fc_reg.{{rest}}'))


def _encoder(norms: tuple[str, str], mlp: str, scale: str) -> tuple[Rule, ...]:
    """The rules of the blocks, with these names of the parts that differ."""
    return (
        *(rule for k in (1, 2) for rule in (
            *pair(f'{_BLOCK}.{norms[k - 1]}.', f'blocks.{{i}}.norm{k}'),
            Rule(f'{_BLOCK}.{scale.format(k=k)}', f'blocks.{{i}}.ls{k}.gamma'),
            *pair(f'{_BLOCK}.{mlp}.fc{k}.', f'blocks.{{i}}.mlp.fc{k}'))),
        *separate_qkv(f'{_BLOCK}.attention.', ('q_proj', 'k_proj', 'v_proj')),
        *(Rule(f'{_BLOCK}.attention.{part}_proj.bias', f'blocks.{{i}}.attn.qkv.{part}_bias') for part in 'qv'),
        *pair(f'{_BLOCK}.attention.o_proj.', 'blocks.{i}.attn.proj'))


_PREFIXES, _OUTSIDE = ('model.backbone.backbone.', ), ('model.', 'class_embed.', 'bbox_embed.')
_CLAIMS = (Claim(GELU | EPS_1E_6), )

HF_LW_DETR = Format('hf_lw_detr', (
    Rule('embeddings.position_embeddings', 'pos_embed', ROW_MORE),
    *pair('embeddings.projection.', 'patch_embed.proj'),
    *_encoder(('layernorm_before', 'layernorm_after'), 'intermediate', 'gamma_{k}'),
    *_projector('model.backbone.projector.scale_layers.{i}.', 'neck.levels.{i}.'),
    *_DECODER,
), _PREFIXES, _OUTSIDE, _CLAIMS)

HF_RF_DETR = Format('hf_rf_detr', (
    Rule('embeddings.cls_token', 'cls_token'),
    Rule('embeddings.position_embeddings', 'pos_embed'),
    *pair('embeddings.patch_embeddings.projection.', 'patch_embed.proj'),
    *_encoder(('norm1', 'norm2'), 'mlp', 'layer_scale{k}.lambda1'),
    *pair('layernorm.', 'norm'),
    *_projector('model.backbone.projector.', 'neck.levels.0.'),
    *_DECODER,
), _PREFIXES, _OUTSIDE, _CLAIMS, ignored={'embeddings.mask_token': 'of masked pre-training'})

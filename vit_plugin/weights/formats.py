"""The tables: one for each naming of a Vision Transformer's weights.

Our own names are timm's for the backbone, ``neck.`` and ``head.layers.`` for what follows it.
"""

from collections.abc import Mapping

from torch import Tensor

from .files import LazyArrays
from .hugging_face import HF, HF_DEIT, HF_DINOV2
from .rules import (
    CONV,
    HEADS_BIAS,
    INTO_HEADS,
    OUT_OF_HEADS,
    TABLE,
    TOKEN,
    TRANSPOSED,
    VECTOR,
    Format,
    Rule,
    is_gated,
    pair,
    same,
    separate_qkv,
)

_TOKENS = ('cls_token', 'dist_token', 'reg_token', 'pos_embed')
_LAYERS = tuple(f'{part}.{{rest}}' for part in ('blocks', 'norm', 'norm_pre', 'patch_embed.proj'))
_RESNET = tuple(f'patch_embed.backbone.{part}.{{rest}}' for part in ('stem', 'stages'))

OWN = Format('vit_plugin', same(*_TOKENS, 'norm.{rest}', 'norm_pre.{rest}', 'blocks.{rest}', 'patch_embed.{rest}',
                                'neck.attn_pool.{rest}', 'neck.levels.{rest}', 'neck.extra_levels.{rest}',
                                'head.layers.{rest}'),
             ('', 'backbone.'), ('head.', 'neck.'))


def _jax_attention(theirs: str, ours: str) -> tuple[Rule, ...]:
    qkv = tuple(f'{theirs}{part}/kernel' for part in ('query', 'key', 'value'))
    bias = tuple(f'{theirs}{part}/bias' for part in ('query', 'key', 'value'))
    return (Rule(qkv, f'{ours}.qkv.weight', INTO_HEADS), Rule(bias, f'{ours}.qkv.bias', HEADS_BIAS),
            Rule(f'{theirs}out/kernel', f'{ours}.proj.weight', OUT_OF_HEADS),
            Rule(f'{theirs}out/bias', f'{ours}.proj.bias'))


_BLOCK = 'Transformer/encoderblock_{i}'
_UNIT, _STAGE = 'block{i+1}/unit{j+1}', 'patch_embed.backbone.stages.{i}.blocks.{j}'
_MAP = 'MAPHead_0/MultiHeadDotProductAttention_0'

# google-research/vision_transformer of every year, and big_vision: the numbers of the layers in a block count all
# of them in the older files (first) and those of one kind in the newer.
JAX = Format('jax', (
    *pair('embedding/', 'patch_embed.proj', 'kernel', CONV),
    Rule('cls', 'cls_token'),
    Rule('(Transformer/posembed_input/|)pos_embedding', 'pos_embed'),
    *pair(f'{_BLOCK}/LayerNorm_0/', 'blocks.{i}.norm1', 'scale', VECTOR),
    *pair(f'{_BLOCK}/LayerNorm_(2|1)/', 'blocks.{i}.norm2', 'scale', VECTOR),
    *_jax_attention(f'{_BLOCK}/MultiHeadDotProductAttention_(1|0)/', 'blocks.{i}.attn'),
    *pair(f'{_BLOCK}/MlpBlock_(3|0)/Dense_0/', 'blocks.{i}.mlp.fc1', 'kernel', TRANSPOSED),
    *pair(f'{_BLOCK}/MlpBlock_(3|0)/Dense_1/', 'blocks.{i}.mlp.fc2', 'kernel', TRANSPOSED),
    *pair('Transformer/encoder_norm/', 'norm', 'scale', VECTOR),
    # the ResNet of a hybrid
    Rule('conv_root/kernel', 'patch_embed.backbone.stem.conv.weight', CONV),
    *pair('gn_root/', 'patch_embed.backbone.stem.norm', 'scale', VECTOR),
    Rule(f'{_UNIT}/conv_proj/kernel', f'{_STAGE}.downsample.conv.weight', CONV),
    *pair(f'{_UNIT}/gn_proj/', f'{_STAGE}.downsample.norm', 'scale', VECTOR),
    Rule(f'{_UNIT}/conv{{k}}/kernel', f'{_STAGE}.conv{{k}}.weight', CONV),
    *pair(f'{_UNIT}/gn{{k}}/', f'{_STAGE}.norm{{k}}', 'scale', VECTOR),
    # what follows the encoder
    Rule('MAPHead_0/probe', 'neck.attn_pool.latent'),
    Rule(f'{_MAP}/query/kernel', 'neck.attn_pool.q.weight', INTO_HEADS),
    Rule(f'{_MAP}/query/bias', 'neck.attn_pool.q.bias', HEADS_BIAS),
    Rule((f'{_MAP}/key/kernel', f'{_MAP}/value/kernel'), 'neck.attn_pool.kv.weight', INTO_HEADS),
    Rule((f'{_MAP}/key/bias', f'{_MAP}/value/bias'), 'neck.attn_pool.kv.bias', HEADS_BIAS),
    Rule(f'{_MAP}/out/kernel', 'neck.attn_pool.proj.weight', OUT_OF_HEADS),
    Rule(f'{_MAP}/out/bias', 'neck.attn_pool.proj.bias'),
    *pair('MAPHead_0/LayerNorm_0/', 'neck.attn_pool.norm', 'scale', VECTOR),
    *pair('MAPHead_0/MlpBlock_0/Dense_0/', 'neck.attn_pool.mlp.fc1', 'kernel', TRANSPOSED),
    *pair('MAPHead_0/MlpBlock_0/Dense_1/', 'neck.attn_pool.mlp.fc2', 'kernel', TRANSPOSED),
    *pair('pre_logits/', 'head.layers.pre_logits', 'kernel', TRANSPOSED),
    *pair('head/', 'head.layers.head', 'kernel', TRANSPOSED),
), ('', 'opt/target/', 'params/', 'params/img/'), numerics='authors', ignored={
    'opt/state/{rest}': 'state of the optimizer',
    'params/txt/{rest}': 'text tower', 'params/t': 'text tower', 'params/b': 'text tower'})

# timm, and MAE, DeiT-III and DINOv2 of their authors, who name their layers alike.
TIMM = Format('timm', (
    Rule('register_tokens', 'reg_token', written=False),
    Rule('blocks.{i}.gamma_{k}', 'blocks.{i}.ls{k}.gamma', written=False),
    *pair('blocks.{i}.mlp.w12.', 'blocks.{i}.mlp.fc1', written=False),
    *pair('blocks.{i}.mlp.w3.', 'blocks.{i}.mlp.fc2', written=False),
    # the hybrid without stages has its root directly in the backbone
    *(Rule(f'patch_embed.backbone.{part}.{{rest}}', f'patch_embed.backbone.stem.{part}.{{rest}}',
           unless='patch_embed.backbone.stages.') for part in ('conv', 'norm')),
    *same(*_TOKENS, *_LAYERS, *_RESNET),
    Rule('attn_pool.{rest}', 'neck.attn_pool.{rest}'),
    *pair('head.', 'head.layers.head'),
    *pair('head_dist.', 'head.layers.head_dist'),
), ('', 'encoder.', 'model.', 'visual.trunk.', 'backbone.'), numerics='timm', ignored={
    'mask_token': 'of masked pre-training', 'decoder_{rest}': 'decoder of masked pre-training'})


_TV = 'encoder.layers.encoder_layer_{i}'

TORCHVISION = Format('torchvision', (
    Rule('class_token', 'cls_token'),
    Rule('encoder.pos_embedding', 'pos_embed'),
    *pair('conv_proj.', 'patch_embed.proj'),
    *pair(f'{_TV}.ln_1.', 'blocks.{i}.norm1'),
    *pair(f'{_TV}.self_attention.in_proj_', 'blocks.{i}.attn.qkv'),
    *pair(f'{_TV}.self_attention.out_proj.', 'blocks.{i}.attn.proj'),
    *pair(f'{_TV}.ln_2.', 'blocks.{i}.norm2'),
    *pair(f'{_TV}.mlp.(0|linear_1).', 'blocks.{i}.mlp.fc1'),
    *pair(f'{_TV}.mlp.(3|linear_2).', 'blocks.{i}.mlp.fc2'),
    *pair('encoder.ln.', 'norm'),
    *pair('heads.pre_logits.', 'head.layers.pre_logits'),
    *pair('heads.head.', 'head.layers.head'),
), numerics='timm')

MMPRETRAIN = Format('mmpretrain', (
    *same('cls_token', 'dist_token', 'pos_embed'),
    *pair('patch_embed.projection.', 'patch_embed.proj'),
    *pair('pre_norm.', 'norm_pre'),
    *pair('layers.{i}.ln1.', 'blocks.{i}.norm1'),
    *pair('layers.{i}.attn.qkv.', 'blocks.{i}.attn.qkv'),
    *pair('layers.{i}.attn.proj.', 'blocks.{i}.attn.proj'),
    *pair('layers.{i}.ln2.', 'blocks.{i}.norm2'),
    *pair('layers.{i}.ffn.w12.', 'blocks.{i}.mlp.fc1', written=is_gated),
    *pair('layers.{i}.ffn.w3.', 'blocks.{i}.mlp.fc2', written=is_gated),
    *pair('layers.{i}.ffn.layers.0.0.', 'blocks.{i}.mlp.fc1'),
    *pair('layers.{i}.ffn.layers.1.', 'blocks.{i}.mlp.fc2'),
    Rule('layers.{i}.attn.gamma1.weight', 'blocks.{i}.ls1.gamma'),
    Rule('layers.{i}.ffn.gamma2.weight', 'blocks.{i}.ls2.gamma'),
    *pair('ln1.', 'norm'),
    Rule('head.layers.{rest}', 'head.layers.{rest}'),
), ('backbone.', ''), ('head.', ), numerics='timm')

_CLIP = '(transformer.resblocks.|encoder.layers.){i}'

# The image towers of OpenAI's and OpenCLIP's CLIP, and of transformers'.
CLIP = Format('clip', (
    Rule('(class_embedding|embeddings.class_embedding)', 'cls_token', TOKEN),
    Rule('(positional_embedding|embeddings.position_embedding.weight)', 'pos_embed', TABLE),
    Rule('(conv1|embeddings.patch_embedding).weight', 'patch_embed.proj.weight'),
    *pair('(ln_pre|pre_layrnorm).', 'norm_pre'),
    *pair(f'{_CLIP}.(ln_1|layer_norm1).', 'blocks.{i}.norm1'),
    *pair(f'{_CLIP}.attn.in_proj_', 'blocks.{i}.attn.qkv'),
    *separate_qkv(f'{_CLIP}.self_attn.', ('q_proj', 'k_proj', 'v_proj')),
    *pair(f'{_CLIP}.(attn.out_proj|self_attn.out_proj).', 'blocks.{i}.attn.proj'),
    *pair(f'{_CLIP}.(ln_2|layer_norm2).', 'blocks.{i}.norm2'),
    *pair(f'{_CLIP}.mlp.(c_fc|fc1).', 'blocks.{i}.mlp.fc1'),
    *pair(f'{_CLIP}.mlp.(c_proj|fc2).', 'blocks.{i}.mlp.fc2'),
    *pair('(ln_post|post_layernorm).', 'norm'),
), ('visual.', 'vision_model.', ''), numerics=dict(
    base='timm', act_cfg=dict(type='QuickGELU'), norm_cfg=dict(eps=1e-5)), ignored={
    'transformer.{rest}': 'text tower', 'text_model.{rest}': 'text tower', 'token_embedding.weight': 'text tower',
    'positional_embedding': 'text tower', 'ln_final.{rest}': 'text tower', 'text_projection(.weight|)': 'text tower',
    'logit_scale': 'contrastive loss', 'proj': 'projection to the space shared with the text',
    'visual.proj': 'projection to the space shared with the text',
    'visual_projection.weight': 'projection to the space shared with the text'})


# The last resizing layer of each level of detectron2's pyramid, from the finest on; two convolutions follow it.
_SIMPLE_FPN = (3, 0, -1, 0)

# ViTDet of detectron2, whose backbone holds the pyramid, and of MMDetection.
VITDET = Format('vitdet', (
    *same('pos_embed', 'blocks.{rest}', 'patch_embed.proj.{rest}'),
    *(rule for i, last in enumerate(_SIMPLE_FPN) for k, layer in ((1, 'lateral'), (2, 'output'))
      for theirs, ours in ((f'(backbone.|)simfp_{i + 2}.{last + k}', f'neck.levels.{i}.{layer}'), )
      for rule in (Rule(f'{theirs}.weight', f'{ours}.conv.weight'), *pair(f'{theirs}.norm.', f'{ours}.norm'))),
    *(rule for i in range(2) for rule in (
        Rule(f'(backbone.|)simfp_{i + 2}.{{rest}}', f'neck.levels.{i}.resize.{{rest}}'),
        Rule(f'neck.fpn{i + 1}.{{rest}}', f'neck.levels.{i}.resize.{{rest}}', written=False))),
    *(rule for theirs, ours in (('lateral_convs', 'lateral'), ('fpn_convs', 'output')) for rule in (
        Rule(f'neck.{theirs}.{{i}}.conv.weight', f'neck.levels.{{i}}.{ours}.conv.weight', written=False),
        *pair(f'neck.{theirs}.{{i}}.(norm_layer|ln).', f'neck.levels.{{i}}.{ours}.norm', written=False))),
), ('backbone.net.', 'net.', 'backbone.'), ('backbone.simfp_', 'simfp_', 'neck.'), numerics='timm', ignored={
    f'{part}{{rest}}': 'of the detector' for part in ('proposal_generator.', 'rpn_head.', 'roi_head', 'pixel_')})


def unwrapped(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Without the ``module.`` that torch's wrappers put before every name."""
    inside = {key.removeprefix('module.'): key for key in weights}
    if not weights or not all(key.startswith('module.') for key in weights):
        return weights
    return LazyArrays(list(inside), lambda name: weights[inside[name]])


def unstacked(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """big_vision's scanned blocks, (blocks, ...) under one ``encoderblock``, as the blocks that they are."""
    scanned = [key for key in weights if '/encoderblock/' in key]
    if not scanned:
        return weights
    blocks = {key.replace('/encoderblock/', f'/encoderblock_{i}/'): (key, i)
              for key in scanned for i in range(weights[scanned[0]].shape[0])}
    names = [*(key for key in weights if key not in scanned), *blocks]

    def read(name: str) -> Tensor:
        if name not in blocks:
            return weights[name]
        key, i = blocks[name]
        return weights[key][i]

    return LazyArrays(names, read)


FORMATS = {form.name: form for form in (OWN, JAX, TIMM, HF, HF_DEIT, HF_DINOV2, TORCHVISION, MMPRETRAIN, CLIP, VITDET)}


def export(state: Mapping[str, Tensor], family: str, heads: int) -> tuple[dict[str, Tensor], list[str], Format]:
    """A state of ours in another naming.

    Args:
        state: the tensors by our names.
        family: a format, or what the names of several begin with; of these the one that leaves the least out.
        heads: the number of attention heads, which only ``'jax'`` shows.

    Returns:
        The tensors by their names, our names that have none there, and the format.
    """
    written = ((*form.export(state, heads), form) for name, form in FORMATS.items()
               if name == family or name.startswith(f'{family}_'))
    return min(written, key=lambda candidate: len(candidate[1]))

"""The naming tables for the image towers of CLIP: OpenAI's, OpenCLIP's and transformers'.

For the rules see :mod:`vit_plugin.weights.formats`.
"""

from ..rules import POSITION_ROWS, TOKEN_VECTOR, Format, Rule, pair, separate_qkv
from ..traits import EPS_1E_5, KnownNumerics
from .plain_block import plain_block


def attention_pool(pool: str, attention: str, fc1: str, fc2: str) -> tuple[Rule, ...]:
    """The rules of attention pooling that has query, key and value in one array.

    Args:
        pool, attention, fc1, fc2: their names of the pooling and of its layers.
    """
    ours = 'neck.attn_pool'
    return (
        Rule(f'{pool}.probe', f'{ours}.latent'),
        *(
            Rule(f'{pool}.{attention}.in_proj_{{rest}}', f'{ours}.{part}.{{rest}}', thirds=thirds)
            for part, thirds in (('q', (0, 1)), ('kv', (1, 3)))
        ),
        *pair(f'{pool}.{attention}.out_proj.', f'{ours}.proj'),
        *pair(f'{pool}.layernorm.', f'{ours}.norm'),
        *pair(f'{pool}.{fc1}.', f'{ours}.mlp.fc1'),
        *pair(f'{pool}.{fc2}.', f'{ours}.mlp.fc2'),
    )


# Patterns of keys outside the image tower -> the reason why they may stay unused.
_TEXT = {
    'text_model.{rest}': 'text tower',
    'logit_scale': 'contrastive loss',
    'text_projection(.weight|)': 'text tower',
}
_BLOCK = 'transformer.resblocks.{i}'
CLIP = Format(
    'clip',
    (
        Rule('class_embedding', 'cls_token', TOKEN_VECTOR),
        Rule('positional_embedding', 'pos_embed', POSITION_ROWS),
        Rule('conv1.weight', 'patch_embed.proj.weight'),
        *pair('ln_pre.', 'norm_pre'),
        *pair(f'{_BLOCK}.attn.in_proj_', 'blocks.{i}.attn.qkv'),
        *plain_block(_BLOCK, 'ln_1', 'attn.out_proj', 'ln_2', 'mlp.c_fc', 'mlp.c_proj'),
        *pair('ln_post.', 'norm'),
        # Perception Encoder
        Rule(f'{_BLOCK}.ls_{{k}}.gamma', 'blocks.{i}.ls{k}.gamma'),
        *attention_pool('attn_pool', 'attn', 'mlp.c_fc', 'mlp.c_proj'),
    ),
    prefixes=('visual.', ''),
    # Without an activation, since OpenAI and LAION use different GELUs.
    known_numerics=(KnownNumerics(EPS_1E_5),),
    ignored={
        **_TEXT,
        'transformer.{rest}': 'text tower',
        'token_embedding.weight': 'text tower',
        'positional_embedding': 'text tower',
        'ln_final.{rest}': 'text tower',
        'proj': 'projection to the space shared with the text',
        'visual.proj': 'projection to the space shared with the text',
    },
)

_LAYER = 'encoder.layers.{i}'
HF_CLIP = Format(
    'hf_clip',
    (
        Rule('embeddings.class_embedding', 'cls_token', TOKEN_VECTOR),
        Rule('embeddings.position_embedding.weight', 'pos_embed', POSITION_ROWS),
        Rule('embeddings.patch_embedding.weight', 'patch_embed.proj.weight'),
        *pair('pre_layrnorm.', 'norm_pre'),
        *separate_qkv(f'{_LAYER}.self_attn.', ('q_proj', 'k_proj', 'v_proj')),
        *plain_block(
            _LAYER, 'layer_norm1', 'self_attn.out_proj', 'layer_norm2', 'mlp.fc1', 'mlp.fc2'
        ),
        *pair('post_layernorm.', 'norm'),
        *pair('classifier.', 'head.layers.head'),
    ),
    prefixes=('vision_model.', ''),
    outside=('classifier.',),
    known_numerics=(KnownNumerics(EPS_1E_5),),
    ignored={**_TEXT, 'visual_projection.weight': 'projection to the space shared with the text'},
)

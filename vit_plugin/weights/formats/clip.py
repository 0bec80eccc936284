"""The image towers of OpenAI's and OpenCLIP's CLIP, and of transformers'."""

from ..rules import TABLE, TOKEN, Format, Rule, pair, separate_qkv
from ..traits import EPS_1E_5, KnownNumerics, is_plain

_POOL_OURS = 'neck.attn_pool'
_CLIP = '(transformer.resblocks.|encoder.layers.){i}'

CLIP = Format(
    'clip',
    (
        Rule('(class_embedding|embeddings.class_embedding)', 'cls_token', TOKEN),
        Rule('(positional_embedding|embeddings.position_embedding.weight)', 'pos_embed', TABLE),
        Rule('(conv1|embeddings.patch_embedding).weight', 'patch_embed.proj.weight'),
        *pair('(ln_pre|pre_layrnorm).', 'norm_pre'),
        *pair(f'{_CLIP}.(ln_1|layer_norm1).', 'blocks.{i}.norm1'),
        *pair(f'{_CLIP}.attn.in_proj_', 'blocks.{i}.attn.qkv'),
        *separate_qkv(f'{_CLIP}.self_attn.', ('q_proj', 'k_proj', 'v_proj')),
        *pair(f'{_CLIP}.(attn.out_proj|self_attn.out_proj).', 'blocks.{i}.attn.proj'),
        *pair(f'{_CLIP}.(ln_2|layer_norm2).', 'blocks.{i}.norm2'),
        *pair(f'{_CLIP}.mlp.(c_fc|fc1).', 'blocks.{i}.mlp.fc1', written=is_plain),
        *pair(f'{_CLIP}.mlp.(c_proj|fc2).', 'blocks.{i}.mlp.fc2'),
        *pair('(ln_post|post_layernorm).', 'norm'),
        # Perception Encoder, and its pooling, which has query, key and value in one array
        Rule('transformer.resblocks.{i}.ls_{k}.gamma', 'blocks.{i}.ls{k}.gamma'),
        Rule('attn_pool.probe', f'{_POOL_OURS}.latent'),
        *(
            Rule(f'attn_pool.attn.in_proj_{kind}', f'{_POOL_OURS}.{ours}.{kind}', thirds=thirds)
            for ours, thirds in (('q', (0, 1)), ('kv', (1, 3)))
            for kind in ('weight', 'bias')
        ),
        *(
            rule
            for theirs, ours in (
                ('attn.out_proj', 'proj'),
                ('layernorm', 'norm'),
                ('mlp.c_fc', 'mlp.fc1'),
                ('mlp.c_proj', 'mlp.fc2'),
            )
            for rule in pair(f'attn_pool.{theirs}.', f'{_POOL_OURS}.{ours}')
        ),
        # OpenAI and LAION use different GELUs.
    ),
    ('visual.', 'vision_model.', ''),
    known_numerics=(KnownNumerics(EPS_1E_5),),
    ignored={
        'transformer.{rest}': 'text tower',
        'text_model.{rest}': 'text tower',
        'token_embedding.weight': 'text tower',
        'positional_embedding': 'text tower',
        'ln_final.{rest}': 'text tower',
        'text_projection(.weight|)': 'text tower',
        'logit_scale': 'contrastive loss',
        'proj': 'projection to the space shared with the text',
        'visual.proj': 'projection to the space shared with the text',
        'visual_projection.weight': 'projection to the space shared with the text',
    },
)

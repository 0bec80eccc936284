"""The tables: one for each set of names of a Vision Transformer's weights.

Our own names are timm's for the backbone. The neck and the head have ``neck.`` and
``head.layers.``.
"""

from collections.abc import Mapping

from torch import Tensor

from .claims import EPS_1E_5, EPS_1E_6, GELU, SILU, Claim, is_deit3, is_gated, is_plain
from .eomt import EOMT_DINOV3, HF_EOMT, HF_EOMT_DINOV3, PMT_DINOV3, authors_eomt, authors_pmt
from .eva import EVA, SPELLINGS, TWO_GATES, VITAMIN, is_no_eva, reject_unnamed
from .hugging_face import HF, HF_DEIT, HF_DINOV2, HF_DINOV3, HF_SIGLIP
from .jax import JAX
from .lw_detr import HF_LW_DETR, HF_RF_DETR
from .rules import COMPUTED, GRID, TABLE, TOKEN, Format, Rule, pair, same, separate_qkv
from .transunet import HEAD, TRANSUNET

_TOKENS = ('cls_token', 'dist_token', 'reg_token', 'pos_embed')
_LAYERS = tuple(f'{part}.{{rest}}' for part in ('blocks', 'norm', 'norm_pre', 'patch_embed.proj'))
_RESNET = tuple(f'patch_embed.backbone.{part}.{{rest}}' for part in ('stem', 'stages'))

OWN = Format(
    'vit_plugin',
    (
        *same(
            *_TOKENS,
            GRID,
            'rope.freqs',
            'norm.{rest}',
            'norm_pre.{rest}',
            'fc_norm.{rest}',
            'blocks.{rest}',
            'patch_embed.{rest}',
            'queries.{rest}',
            'decoder.{rest}',
            'tuning.{rest}',
            'head.layers.{rest}',
            *(f'neck.{part}.{{rest}}' for part in ('attn_pool', 'norm', 'levels', 'extra_levels')),
            'bbox_head.{rest}',
        ),
        *HEAD,
    ),
    ('', 'backbone.'),
    ('head.', 'neck.', 'bbox_head.', 'decode_head.'),
)

# BEiT-3, AIMv2 and DINOv3 have an eps of their own.
_NORMS = (
    Claim(EPS_1E_6, having={'pos_embed', 'norm_bias'}, lacking={'norm_pre', 'attn_norm'}),
    Claim(EPS_1E_5, having={'norm_pre', 'norm_bias'}),
)

_TIMM_LAYERS = (
    # in the hybrid without stages, the backbone is the root
    *(
        Rule(
            f'patch_embed.backbone.{part}.{{rest}}',
            f'patch_embed.backbone.stem.{part}.{{rest}}',
            unless='patch_embed.backbone.stages.',
        )
        for part in ('conv', 'norm')
    ),
    *same(
        *_TOKENS,
        *_LAYERS[1:],
        *_RESNET,
        'rope.freqs',
        'patch_embed.norm.{rest}',
        'patch_embed.backbone.{rest}',
    ),
    Rule('attn_pool.{rest}', 'neck.attn_pool.{rest}'),
    Rule('fc_norm.{rest}', 'neck.norm.{rest}'),
    *pair('head.', 'head.layers.head'),
    *pair('head_dist.', 'head.layers.head_dist'),
)

# timm, and MAE, DeiT-III, DINOv2, DINOv3 and EVA-02 of their authors, who name their layers alike.
TIMM = Format(
    'timm',
    (
        *SPELLINGS,
        *VITAMIN,
        *TWO_GATES,
        Rule('blocks.{rest}', 'blocks.{rest}', written=is_no_eva),
        *_TIMM_LAYERS,
    ),
    ('', 'encoder.', 'model.', 'visual.trunk.', 'timm_model.', 'backbone.'),
    claims=(
        *_NORMS,
        SILU,
        # SigLIP has no class token, CLIP has a norm before the blocks. Some of both have another
        # GELU
        Claim(GELU, having={'cls_token', 'norm_bias'}, lacking={'norm_pre', 'gated'}),
        Claim(
            dict(stem_norm_cfg=dict(eps=1e-5), stem_conv_cfg=dict(eps=1e-8, eps_inside_root=True)),
            having={'hybrid'},
        ),
    ),
    ignored={
        'mask_token': 'of masked pre-training',
        'decoder_{rest}': 'decoder of masked pre-training',
        'lm_head.{rest}': 'of masked pre-training',
        'local_cls_norm.{rest}': 'of pre-training with crops',
        'rope.freqs_(cos|sin)': COMPUTED,
        'rope_embed.periods': COMPUTED,
        'blocks.{i}.attn.rope.freqs_(cos|sin)': COMPUTED,
        'blocks.{i}.attn.qkv.bias_mask': 'the bias of the keys is zero',
    },
)

# EoMT and PMT of their authors, on a model of timm.
_IN_TIMM = tuple(
    Rule(f'encoder.backbone.{name}', name)
    for name in (*_TOKENS, *_LAYERS, 'patch_embed.backbone.{rest}')
)
EOMT = authors_eomt('eomt', _IN_TIMM, GELU | EPS_1E_6)
PMT = authors_pmt('pmt', _IN_TIMM)

# timm's class Eva has some other names. Reading takes them with the others above.
TIMM_EVA = Format(
    'timm_eva', (*EVA, *TWO_GATES, *same('blocks.{rest}'), *_TIMM_LAYERS), claims=(SILU,)
)


_TV = 'encoder.layers.encoder_layer_{i}'

TORCHVISION = Format(
    'torchvision',
    (
        Rule('class_token', 'cls_token'),
        Rule('encoder.pos_embedding', 'pos_embed'),
        *pair('conv_proj.', 'patch_embed.proj'),
        *pair(f'{_TV}.ln_1.', 'blocks.{i}.norm1'),
        *pair(f'{_TV}.self_attention.in_proj_', 'blocks.{i}.attn.qkv'),
        *pair(f'{_TV}.self_attention.out_proj.', 'blocks.{i}.attn.proj'),
        *pair(f'{_TV}.ln_2.', 'blocks.{i}.norm2'),
        *pair(f'{_TV}.mlp.(0|linear_1).', 'blocks.{i}.mlp.fc1', written=is_plain),
        *pair(f'{_TV}.mlp.(3|linear_2).', 'blocks.{i}.mlp.fc2'),
        *pair('encoder.ln.', 'norm'),
        *pair('heads.pre_logits.', 'head.layers.pre_logits'),
        *pair('heads.head.', 'head.layers.head'),
    ),
    claims=(Claim(GELU | EPS_1E_6),),
)

MMPRETRAIN = Format(
    'mmpretrain',
    (
        *same('cls_token', 'dist_token', 'pos_embed', 'patch_embed.norm.{rest}'),
        *pair('patch_embed.projection.', 'patch_embed.proj'),
        *pair('pre_norm.', 'norm_pre'),
        *pair('layers.{i}.(ln1|norm1).', 'blocks.{i}.norm1'),
        *pair('layers.{i}.attn.qkv.', 'blocks.{i}.attn.qkv'),
        *pair('layers.{i}.attn.proj.', 'blocks.{i}.attn.proj'),
        *pair('layers.{i}.(ln2|norm2).', 'blocks.{i}.norm2'),
        # ViTEVA02's names are the second.
        *pair('layers.{i}.(ffn|mlp).w12.', 'blocks.{i}.mlp.fc1', written=is_gated),
        *pair('layers.{i}.(ffn|mlp).w3.', 'blocks.{i}.mlp.fc2', written=is_gated),
        *pair('layers.{i}.mlp.norm.', 'blocks.{i}.mlp.norm'),
        *pair('layers.{i}.ffn.layers.0.0.', 'blocks.{i}.mlp.fc1'),
        *pair('layers.{i}.ffn.layers.1.', 'blocks.{i}.mlp.fc2'),
        Rule('layers.{i}.attn.gamma1.weight', 'blocks.{i}.ls1.gamma'),
        Rule('layers.{i}.ffn.gamma2.weight', 'blocks.{i}.ls2.gamma'),
        *pair('ln1.', 'norm'),
        *pair('ln2.', 'fc_norm'),  # of out_type='avg_featmap'
        Rule('head.layers.{rest}', 'head.layers.{rest}'),
    ),
    ('backbone.', ''),
    ('head.',),
    claims=(*_NORMS, SILU, Claim(GELU, lacking={'norm_pre', 'gated'})),
    notes=(
        (
            is_deit3,
            "MMPretrain's DeiT3 applies ln1 where the authors apply ln2. The authors' weights "
            'that it converted are right here. Weights that it trained compute something else, '
            'unless ln1 is copied to ln2 first',
        ),
    ),
    ignored={'rope.freqs_(cos|sin)': COMPUTED, 'layers.{i}.attn.rope.freqs_(cos|sin)': COMPUTED},
)

_POOL_OURS = 'neck.attn_pool'
_CLIP = '(transformer.resblocks.|encoder.layers.){i}'

# The image towers of OpenAI's and OpenCLIP's CLIP, and of transformers'.
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
    claims=(Claim(EPS_1E_5),),
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


# Sapiens 2 of its authors. Its keys and values have fewer heads than its queries.
SAPIENS2 = Format(
    'sapiens2',
    (
        Rule('storage_tokens', 'reg_token'),
        *same(
            'cls_token',
            'blocks.{i}.attn.proj.{rest}',
            'blocks.{i}.attn.q_norm.{rest}',
            'blocks.{i}.attn.k_norm.{rest}',
        ),
        *pair('patch_embed.projection.', 'patch_embed.proj'),
        *(Rule(f'blocks.{{i}}.ln{k}.{{rest}}', f'blocks.{{i}}.norm{k}.{{rest}}') for k in (1, 2)),
        *separate_qkv('blocks.{i}.attn.', ('wq', 'wk', 'wv')),
        Rule('blocks.{i}.attn.gamma.weight', 'blocks.{i}.ls1.gamma'),
        *pair('blocks.{i}.ffn.w12.', 'blocks.{i}.mlp.fc1'),
        *pair('blocks.{i}.ffn.w3.', 'blocks.{i}.mlp.fc2'),
        Rule('ln1.{rest}', 'norm.{rest}'),
    ),
    ('', 'backbone.'),
    claims=(SILU,),
    ignored={'mask_token': 'of masked pre-training', 'rope_embed.periods': COMPUTED},
)

# The last resizing layer of each level of detectron2's pyramid, from the finest on; two
# convolutions follow it.
_SIMPLE_FPN = (3, 0, -1, 0)

# ViTDet of detectron2, whose backbone holds the pyramid, and of MMDetection.
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
        *(
            rule
            for i in range(2)
            for rule in (
                Rule(f'(backbone.|)simfp_{i + 2}.{{rest}}', f'neck.levels.{i}.resize.{{rest}}'),
                Rule(
                    f'neck.fpn{i + 1}.{{rest}}', f'neck.levels.{i}.resize.{{rest}}', written=False
                ),
            )
        ),
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
    ('backbone.net.', 'net.', 'backbone.'),
    ('backbone.simfp_', 'simfp_', 'neck.'),
    claims=(Claim(GELU | EPS_1E_6),),
    ignored={
        f'{part}{{rest}}': 'of the detector'
        for part in ('proposal_generator.', 'rpn_head.', 'roi_head', 'pixel_')
    },
)


# The parts of a ViT-Adapter, by its authors' names and ours. Its backbone is the part ``backbone``,
# or all the others.
ADAPTER = (
    'backbone',
    'spm',
    'level_embed',
    'interactions',
    'up',
    'norm1',
    'norm2',
    'norm3',
    'norm4',
)

# A ViT-Adapter: ours, its authors' and DINOv3's. DINOv3's file has the adapter without its
# backbone.
VIT_ADAPTER = Format(
    'vit_adapter',
    (
        Rule('(backbone.|)blocks.{i}.gamma(_|){k}', 'blocks.{i}.ls{k}.gamma', written=False),
        *(
            Rule(f'(backbone.|){name}', name)
            for name in (*_TOKENS, *_LAYERS, 'patch_embed.{rest}', 'rope.freqs', GRID)
        ),
        *same(
            'level_embed',
            *(f'{part}.{{rest}}' for part in ADAPTER if part not in ('backbone', 'level_embed')),
        ),
    ),
    ('', 'backbone.', 'segmentation_model.0.'),
    has_backbone=False,
    ignored={'segmentation_model.1.{rest}': 'of the segmentor'},
)


FORMATS = {
    form.name: form
    for form in (
        OWN,
        JAX,
        TIMM,
        TIMM_EVA,
        HF,
        HF_DEIT,
        HF_DINOV2,
        HF_DINOV3,
        HF_SIGLIP,
        TORCHVISION,
        MMPRETRAIN,
        CLIP,
        SAPIENS2,
        VITDET,
        VIT_ADAPTER,
        EOMT,
        EOMT_DINOV3,
        HF_EOMT,
        HF_EOMT_DINOV3,
        PMT,
        PMT_DINOV3,
        HF_LW_DETR,
        HF_RF_DETR,
        TRANSUNET,
    )
}


def export(
    state: Mapping[str, Tensor], family: str, heads: int
) -> tuple[dict[str, Tensor], list[str], Format]:
    """Convert a state dict of ours to another format.

    Args:
        state: the tensors by our names.
        family: the name of a format, or the start of several names. Of several formats, the one
            that leaves out the fewest tensors is used.
        heads: the number of attention heads. Only ``'jax'`` needs it.

    Returns:
        The tensors under the names of the format, our names that the format lacks, and the format.

    Raises:
        ConfigError: if only our own format has names for the model's blocks.
    """
    if family != OWN.name:
        reject_unnamed(state)
    written = (
        (*form.export(state, heads), form)
        for name, form in FORMATS.items()
        if name == family or name.startswith(f'{family}_')
    )
    return min(written, key=lambda candidate: len(candidate[1]))

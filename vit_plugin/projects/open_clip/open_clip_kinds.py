"""The entries of ``open_clip_config.json``: their defaults, or the reason why they are unused."""

from timm.data import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.foreign_config import ConfigKind

# `CLIPVisionCfg` of `open_clip/model.py`, and `PreprocessCfg` of `open_clip/transform.py`.
VISION_FIELDS = ConfigKind(
    defaults=dict(
        layers=12,
        width=768,
        head_width=64,
        mlp_ratio=4.0,
        patch_size=16,
        image_size=224,
        ls_init_value=None,
        attentional_pool=False,
        no_ln_pre=False,
        pos_embed_type='learnable',
        final_ln_after_pool=False,
        pool_type='tok',
        act_kwargs=None,
        norm_kwargs=None,
        block_type=None,
        qk_norm=False,
        scaled_cosine_attn=False,
        scale_heads=False,
        scale_attn_inner=False,
        scale_attn=False,
        scale_fc=False,
        timm_model_name=None,
        timm_pool='avg',
        timm_proj='linear',
    ),
    unused={
        'settings of a training': 'patch_dropout timm_model_pretrained timm_drop timm_drop_path',
        'the projection to the space of images and text': 'timm_proj_bias',
        'the form of outputs': 'output_tokens',
        'attentional pooling, which is not supported': 'attn_pooler_queries attn_pooler_heads',
    },
)
# Fields of a ViT -> the value that transformers' CLIP has.
PLAIN_VALUES: Section = {
    name: VISION_FIELDS.defaults[name]
    for name in (
        'ls_init_value', 'attentional_pool', 'no_ln_pre', 'pos_embed_type', 'final_ln_after_pool',
        'pool_type', 'act_kwargs', 'norm_kwargs', 'block_type', 'qk_norm', 'scaled_cosine_attn',
        'scale_heads', 'scale_attn_inner', 'scale_attn', 'scale_fc',
    )
}  # fmt: skip
MODEL_FIELDS = ConfigKind(
    defaults=dict(vision_cfg=None, quick_gelu=False),
    unused={
        'the tower of text': 'text_cfg multimodal_cfg custom_text',
        'the contrastive loss': 'init_logit_scale init_logit_bias nonscalar_logit_scale',
        'the space of images and text': 'embed_dim',
        'precision and the form of outputs of a run': 'cast_dtype output_dict',
    },
)
PREPROCESSING_FIELDS = ConfigKind(
    defaults=dict(
        size=None,
        mode='RGB',
        mean=OPENAI_CLIP_MEAN,
        std=OPENAI_CLIP_STD,
        interpolation='bicubic',
        resize_mode='shortest',
    ),
    unused={'padding, which is not supported': 'fill_color'},
)
FOLDER_FIELDS = ConfigKind(defaults=dict(model_cfg=None, preprocess_cfg=None))

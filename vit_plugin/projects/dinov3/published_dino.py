"""The folders of DINOv2 and DINOv3 that transformers writes: which backbone they are."""

import math

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Published, filled, normalization
from vit_plugin.weights.recognition import recognize

KINDS = ('dinov2', 'dinov2_with_registers', 'dinov3_vit')
DEFAULTS = dict(  # of their configs, as far as shapes do not tell
    image_size=224,
    num_attention_heads=12,
    layer_norm_eps=1e-6,
    hidden_act='gelu',
    rope_theta=100.0,
    use_swiglu_ffn=False,
)
ACTIVATIONS: dict[str, Section] = {
    'gelu': dict(approximate='none'),
    'silu': dict(type='SiLU'),
}


def dino(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a backbone, which has no classes. None if it is another model.

    Raises:
        ConfigError: if it is one that cannot be built here.
    """
    if published.kind not in KINDS:
        return None
    config, ours = filled(published.config, DEFAULTS), recognize(published.weights)
    activation = 'silu' if config['use_swiglu_ffn'] else config['hidden_act']
    if activation not in ACTIVATIONS:
        raise ConfigError(
            f'its activation is {activation}, and gelu and silu are known; give another'
        )
    width, _, patch, _ = ours['patch_embed.proj.weight'].shape
    hidden = ours['blocks.0.mlp.fc2.weight'].shape[1]
    bias = 'blocks.0.attn.qkv.'
    table = ours['pos_embed'].shape[1] if 'pos_embed' in ours else 0
    side = math.isqrt(table - 1) * patch if table else config['image_size'] // patch * patch
    rotary = dict(form='centred', planes='halves', temperature=config['rope_theta'])
    backbone = dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(
            embed_dims=width,
            num_layers=len({name.split('.')[1] for name in ours if name.startswith('blocks.')}),
            num_heads=config['num_attention_heads'],
            feedforward_channels=hidden,
            patch_size=patch,
        ),
        img_size=side,
        numerics=dict(
            base='timm',
            act_cfg=ACTIVATIONS[activation],
            norm_cfg=dict(eps=config['layer_norm_eps']),
        ),
        encoder=dict(
            qkv_bias=True if f'{bias}bias' in ours else 'qv' if f'{bias}q_bias' in ours else False,
            proj_bias='blocks.0.attn.proj.bias' in ours,
            layer_scale_init_value=1.0,
            gated_mlp=ours['blocks.0.mlp.fc1.weight'].shape[0] == 2 * hidden,
            reg_token=ours['reg_token'].shape[1] if 'reg_token' in ours else 0,
        ),
        pos_embed=dict(type='learned', interpolate_mode='bicubic')
        if table
        else dict(type='none', rotary=rotary),
        out_type='cls_token',
    )
    pixels = published.pixels(side)
    preprocessor = normalization(pixels['mean'], pixels['std'])
    preprocessor['to_rgb'] = preprocessor.pop('bgr_to_rgb')
    model = dict(type='ImageClassifier', backbone=backbone, data_preprocessor=preprocessor)
    return dict(default_scope='mmpretrain', model=model), []

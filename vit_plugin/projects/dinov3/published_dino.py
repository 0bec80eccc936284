"""The folders of DINOv2 and DINOv3 that transformers writes: which backbone they are."""

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Published, filled, normalization

KINDS = ('dinov2', 'dinov2_with_registers', 'dinov3_vit')
# Of their configs, as far as shapes do not tell.
DEFAULTS = dict(hidden_act='gelu', use_swiglu_ffn=False)
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
    config, has_table = filled(published.config, DEFAULTS), 'pos_embed' in published.ours
    activation = 'silu' if config['use_swiglu_ffn'] else config['hidden_act']
    if activation not in ACTIVATIONS:
        raise ConfigError(
            f'its activation is {activation}, and gelu and silu are known; give another'
        )
    backbone = published.vit(config)
    backbone['numerics']['act_cfg'] = ACTIVATIONS[activation]
    backbone |= dict(
        type='vit_plugin.VisionTransformer',
        encoder=published.encoder(),
        pos_embed=dict(type='learned', interpolate_mode='bicubic')
        if has_table
        else published.rotary(),
        out_type='cls_token',
    )
    pixels = published.pixels(backbone['img_size'])
    preprocessor = normalization(pixels['mean'], pixels['std'])
    preprocessor['to_rgb'] = preprocessor.pop('bgr_to_rgb')
    model = dict(type='ImageClassifier', backbone=backbone, data_preprocessor=preprocessor)
    return dict(default_scope='mmpretrain', model=model), []

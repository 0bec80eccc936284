"""The folders of DINOv2 and DINOv3 that transformers writes: which backbone they are."""

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.published import Published, normalization

KINDS = ('dinov2', 'dinov2_with_registers', 'dinov3_vit')


def dino(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a backbone, which has no classes. None if it is another model.

    Raises:
        ConfigError: if it is one that cannot be built here.
    """
    if published.kind not in KINDS:
        return None
    backbone, has_table = published.vit(published.config), 'pos_embed' in published.ours
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

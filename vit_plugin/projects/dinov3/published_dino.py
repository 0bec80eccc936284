"""The folders of DINOv2 and DINOv3 that transformers writes: which backbone they are."""

from vit_plugin.arguments.fields import Section
from vit_plugin.weights.encoder_kinds import ENCODER_KINDS, MAPS
from vit_plugin.weights.published import Published, normalization
from vit_plugin.weights.published_encoder import encoder_of, rotary_of


def dino(published: Published) -> tuple[Section, list[str]] | None:
    """The config of a backbone, which has no classes. None if it is another model.

    Raises:
        ConfigError: if it is one that cannot be built here.
    """
    kind = ENCODER_KINDS.get(published.kind)
    if kind is None:
        return None
    config = published.described_by(kind.config, *kind.models)
    if config is None:
        return None
    config.leave(*MAPS)
    table = dict(type='learned', interpolate_mode=kind.interpolate_mode)
    backbone = dict(
        encoder_of(published, config),
        type='vit_plugin.VisionTransformer',
        pos_embed=table if kind.interpolate_mode else rotary_of(config),
        out_type='cls_token',
    )
    pixels = published.pixels(backbone['img_size'])
    preprocessor = normalization(pixels['mean'], pixels['std'])
    preprocessor['to_rgb'] = preprocessor.pop('bgr_to_rgb')
    model = dict(type='ImageClassifier', backbone=backbone, data_preprocessor=preprocessor)
    return dict(default_scope='mmpretrain', model=model), []

"""Models of transformers that are not supported, each with a clause that says why.

The clauses complete "its config.json has model_type='x', and ...".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.errors import ConfigError

from .hub_files import model_config_next_to
from .image_kinds import IMAGE_KINDS
from .opening import Checkpoint
from .published import get_typed

TRAINS_ON_MAPS = (
    'vit-plugin train --data FOLDER --weights trains a classifier, detector or segmentor on its '
    'maps, with the backbone TransformersBackbone'
)
SAVE_ENCODER = (
    'of this type, only the encoder and the image classifier are supported; save one of these'
)
DETECTOR = (
    'it is a detector with an encoder or decoder that no model here has; supported are RF-DETR, '
    'LW-DETR, RT-DETR, D-FINE, DETR, Conditional DETR and Deformable DETR, and vit-plugin train '
    '--task detection trains one'
)
ONLY_MASKS = (
    'it predicts masks with a decoder that no model here has; EoMT is supported, and vit-plugin '
    'train --task segmentation trains a SegFormer head, UPerNet or Mask2Former'
)
PROMPTED = (
    'it belongs to a model that answers prompts, which no model here does; the image encoders of '
    "SAM and SAM 2 are timm's, so give --weights timm://samvit_base_patch16.sa1b or "
    'timm://sam2_hiera_tiny.fb_r896, or their larger sizes'
)
NAFLEX = (
    'it takes images at their own aspect ratio; SigLIP 2 at a fixed size is supported, and '
    "TimmBackbone computes timm's NaFlex models"
)
ONLY_MAPS = 'it returns only maps, and no vector for an image; ' + TRAINS_ON_MAPS
TWO_HEADS = (
    'its two classifiers get different features, which no head here supports; save the classifier '
    'without a teacher'
)
TEXT_OR_SOUND = 'no model here reads it; give an image encoder, a classifier or a detector'
# The clause for each `model_type`.
REASONS: Mapping[str, str] = {
    kind: why
    for kinds, why in (
        (
            'swin swinv2 hiera convnext convnextv2 dinov3_convnext focalnet pvt pvt_v2 hgnet_v2 '
            'swiftformer resnet regnet bit levit mobilevit mobilevitv2 cvt mobilenet_v1 '
            'mobilenet_v2 efficientnet poolformer segformer',
            SAVE_ENCODER,
        ),
        ('vitpose_backbone vitdet', ONLY_MAPS),
        (
            'd_fine rt_detr rt_detr_v2 yolos dab_detr table_transformer grounding_dino '
            'mm-grounding-dino omdet-turbo owlvit owlv2 deta deimv2',
            DETECTOR,
        ),
        ('upernet mask2former maskformer oneformer seggpt vitmatte clipseg', ONLY_MASKS),
        (
            'sam sam_vision_model sam2 sam2_vision_model sam2_hiera_det_model sam3 '
            'sam3_vision_model sam_hq sam_hq_vision_model edgetam edgetam_vision_model',
            PROMPTED,
        ),
        ('siglip2 siglip2_vision_model', NAFLEX),
    )
    for kind in kinds.split()
}

# The clause for classes whose names have this ending, whatever their `model_type`.
REASONS_BY_CLASS_ENDING = {
    'ForSemanticSegmentation': ONLY_MASKS,
    'ForUniversalSegmentation': ONLY_MASKS,
    'ForInstanceSegmentation': ONLY_MASKS,
    'ForObjectDetection': DETECTOR,
    'ForImageClassificationWithTeacher': TWO_HEADS,
}


def reject_unread_kind(checkpoint: Checkpoint) -> None:
    """Raise a ``ConfigError`` for a hub folder whose model is not supported.

    It is called after every reader has declined the checkpoint, so any config that names a model is
    an error. A checkpoint without a config next to it passes.
    """
    config = checkpoint.hub_configs.get('config')
    architectures = [*get_typed(config, 'architectures', Sequence[str], ())]
    kind = get_typed(config, 'model_type', str, '')
    if not (architectures or kind):
        if config_file := model_config_next_to(checkpoint.path):
            raise ConfigError(
                f'{str(config_file)!r} names no model, neither by model_type as '
                'transformers does, nor by architecture as timm does; download it again, or give '
                '--arch, such as B/16.'
            )
        return
    entries = dict(model_type=kind, architectures=architectures)
    stated = ' and '.join(f'{name}={value!r}' for name, value in entries.items() if value)
    raise ConfigError(
        f'{checkpoint.source!r}: its config.json has {stated}, and {_why(config, kind)}. With '
        '--config, or with --arch where its blocks are those of a ViT, its weights alone are read.'
    )


def _why(config: Any, kind: str) -> str:
    """Why the model of a config is not supported, and what to do."""
    if not kind:
        return 'it has no model_type, which identifies the model; add it'
    architectures = get_typed(config, 'architectures', Sequence[str], ())
    for end, why in REASONS_BY_CLASS_ENDING.items():
        if any(name.endswith(end) for name in architectures):
            return why
    image_kind = IMAGE_KINDS.get(kind)
    if image_kind is not None:
        return f'of this type, {", ".join(image_kind.poolings)} are supported; save one of these'
    if 'auto_map' in config:
        return 'it names code of its own (auto_map), which is never run; give another model'
    return REASONS.get(kind, TEXT_OR_SOUND)

"""The model types of transformers whose pooled vector can be computed, by ``model_type``."""

from collections.abc import Mapping
from typing import NamedTuple

from vit_plugin.weights.image_kinds import IMAGE_KINDS


class PooledKind(NamedTuple):
    """The models of one ``model_type``.

    Attributes:
        title: prefix of their class names, such as ``'ConvNext'``.
        processor: their image processor, a key of
            :data:`~vit_plugin.weights.processor_kinds.PROCESSORS`.
        classifies: whether transformers has a class with a linear classifier. The vector is the
            input of the classifier, or else the ``pooler_output`` of the model.
    """

    title: str
    processor: str
    classifies: bool = True


POOLED_KINDS: Mapping[str, PooledKind] = {
    'beit': PooledKind('Beit', 'Beit'),
    'bit': PooledKind('Bit', 'Bit'),
    'convnext': PooledKind('ConvNext', 'ConvNext'),
    'convnextv2': PooledKind('ConvNextV2', 'ConvNext'),
    'cvt': PooledKind('Cvt', 'ConvNext'),
    'data2vec-vision': PooledKind('Data2VecVision', 'Beit'),
    'efficientnet': PooledKind('EfficientNet', 'EfficientNet'),
    'focalnet': PooledKind('FocalNet', 'Bit'),
    'hgnet_v2': PooledKind('HGNetV2', 'ConvNext'),
    'hiera': PooledKind('Hiera', 'Bit'),
    'levit': PooledKind('Levit', 'Levit'),
    'mobilenet_v1': PooledKind('MobileNetV1', 'MobileNetV1'),
    'mobilenet_v2': PooledKind('MobileNetV2', 'MobileNetV2'),
    'mobilevit': PooledKind('MobileViT', 'MobileViT'),
    'mobilevitv2': PooledKind('MobileViTV2', 'MobileViT'),
    'poolformer': PooledKind('PoolFormer', 'PoolFormer'),
    'pvt': PooledKind('Pvt', 'Pvt'),
    'pvt_v2': PooledKind('PvtV2', 'Pvt'),
    'regnet': PooledKind('RegNet', 'ConvNext'),
    'resnet': PooledKind('ResNet', 'ConvNext'),
    'segformer': PooledKind('Segformer', 'Segformer'),
    'swiftformer': PooledKind('SwiftFormer', 'ViT'),
    'swin': PooledKind('Swin', 'ViT'),
    'swinv2': PooledKind('Swinv2', 'ViT'),
    'aimv2_vision_model': PooledKind('Aimv2Vision', 'CLIP', classifies=False),
    'dinov3_convnext': PooledKind('DINOv3ConvNext', 'DINOv3ViT', classifies=False),
    'pixio': PooledKind('Pixio', 'Bit', classifies=False),
}
# Model types with feature maps, but without a pooled vector.
MAP_ONLY_TYPES = ('dinat', 'textnet', 'vitdet', 'vitpose_backbone')


def needs_wrapper(model_type: str) -> bool:
    """True for a model type of :data:`POOLED_KINDS` that none of our own encoders computes."""
    return model_type in POOLED_KINDS and model_type not in IMAGE_KINDS

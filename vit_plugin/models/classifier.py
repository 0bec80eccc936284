"""A classifier for plain PyTorch: images to logits, without a framework around it."""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from vit_plugin.arch import ArchCfg, parse_arch
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS
from vit_plugin.weights.report import Report
from vit_plugin.weights.saved_settings import training_settings
from vit_plugin.zoo.data_config import data_config_of
from vit_plugin.zoo.definition import pooling_of

from .backbones import VisionTransformer
from .layers.head import head_layers, reset_head
from .layers.outputs import MAP_OUT_TYPES
from .loading import load_weights

# Arguments of the backbone in a config that `create_model` does not take.
UNSUPPORTED_ARGUMENTS = dict(
    init_cfg='is for the runner, which initializes; give pretrained=... here',
    type="is always the backbone 'vit_plugin.VisionTransformer'; leave it out",
)


class Parts(NamedTuple):
    """Configs of a classifier's components, and the width between them and the head.

    Attributes:
        backbone: config of a :class:`~vit_plugin.models.VisionTransformer`.
        neck: config of a :class:`~vit_plugin.models.TokenPooling`, or None.
        in_channels: width of the head's input.
    """

    backbone: dict[str, Any]
    neck: dict[str, Any] | None
    in_channels: int


def classifier_parts(arch: str | ArchCfg, **backbone: Any) -> Parts:
    """The components of a classifier that pools like the model that ``arch`` names.

    Args:
        arch: see :func:`~vit_plugin.arch.parse_arch`.
        backbone: further arguments of the backbone; those that are None are left out. An
            ``out_type`` among them replaces the pooling.

    Raises:
        ConfigError: if the arch is unknown.
    """
    width, neck = parse_arch(arch).embed_dims, None
    arguments = {key: value for key, value in backbone.items() if value is not None}
    if isinstance(arch, str) and arch.startswith('timm://') and 'out_type' not in arguments:
        pooling = pooling_of(arch.removeprefix('timm://'))
        if pooling:
            arguments['out_type'], neck = pooling
    return Parts(dict(type='vit_plugin.VisionTransformer', arch=arch, **arguments), neck, width)


class Classifier(nn.Module):
    """Images (N, C, H, W) -> logits (N, num_classes), or features (N, C') if ``num_classes`` is 0.

    Its parameters have the same names as in MMPretrain's ``ImageClassifier`` with our components,
    so both read each other's weights.

    Attributes:
        data_config: the expected preprocessing, see :func:`create_model`.
        report: the loading report; None without weights.
    """

    data_config: dict[str, Any]
    report: Report | None = None

    def __init__(self, parts: Parts, num_classes: int) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.backbone: VisionTransformer = MODELS.build(parts.backbone)
        if not parts.neck and self.backbone.out_type in ('raw', *MAP_OUT_TYPES):
            raise ConfigError(
                f'create_model: out_type={self.backbone.out_type!r} returns no vector for an '
                "image; choose 'cls_token' or 'avg_featmap'."
            )
        self.neck = MODELS.build(parts.neck) if parts.neck else nn.Identity()
        self.head: nn.Module = nn.Identity()
        if num_classes:
            layers = head_layers(num_classes, parts.in_channels)
            reset_head(layers)
            self.head = nn.Sequential(OrderedDict(layers=layers))  # the name of ViTClsHead's layers

    def forward_features(self, images: Tensor) -> Tensor:
        """Images (N, C, H, W) -> the features (N, C'), the input of the head."""
        return self.neck(self.backbone(images))[-1]

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.forward_features(images))


def create_model(
    arch: str | ArchCfg = 'B/16',
    num_classes: int = 1000,
    pretrained: str | Path | Mapping[str, Tensor] | bool | None = None,
    img_size: Any = None,
    **backbone: Any,
) -> Classifier:
    """Make a plain ``torch.nn.Module`` classifier: images (N, C, H, W) -> logits (N, num_classes).

    It needs torch, timm and MMEngine, and no MMPretrain. ``model.data_config`` is the expected
    preprocessing, in timm's terms: ``input_size`` (C, H, W), ``interpolation``, ``mean`` and
    ``std`` of values from 0 to 1, ``crop_pct`` and ``crop_mode``.
    ``timm.data.create_transform(**model.data_config)`` is the transform of a Pillow image.

    Args:
        arch: a variant such as ``'R50+B/16'``, a timm name such as
            ``'timm://vit_base_patch16_dinov3'``, or a dict; see
            :func:`~vit_plugin.arch.parse_arch`.
        num_classes: number of classes. 0 returns features, without a head.
        pretrained: weights for :func:`~vit_plugin.models.load_weights`: a path, ``https://``,
            ``timm://``, ``hf://``, or tensors by name. True means those that ``arch=timm://...``
            names. A classifier among them is used if its number of classes matches.
        img_size: native size of the images in pixels, (H, W) or the side of a square. Default: that
            of the training that saved ``pretrained``, else that of the arch.
        backbone: further arguments of :class:`~vit_plugin.models.VisionTransformer`.

    Raises:
        ConfigError: if the arch is unknown, if an argument is wrong, or if the weights do not fit.
    """
    if not isinstance(num_classes, int) or isinstance(num_classes, bool) or num_classes < 0:
        raise ConfigError(
            f'create_model: num_classes={num_classes!r} must be an integer from 0; 0 returns '
            'features.'
        )
    for name, remedy in UNSUPPORTED_ARGUMENTS.items():
        if name in backbone:
            raise ConfigError(f'create_model: {name} {remedy}.')
    source: Any = None if pretrained is False else pretrained
    if pretrained is True:
        if not str(arch).startswith('timm://'):
            raise ConfigError(
                'create_model: pretrained=True takes the weights that arch=timm://... names, and '
                f'this is arch={arch!r}; give a path or an address.'
            )
        source = arch
    if source is not None and not (isinstance(source, (str, Path, Mapping)) and source):
        raise ConfigError(
            f'create_model: pretrained={pretrained!r} must be a path, an address, tensors by name '
            'or True; leave it out for random weights.'
        )
    if img_size is None:
        img_size = training_settings(source).get('img_size')
    model = Classifier(classifier_parts(arch, img_size=img_size, **backbone), num_classes)
    stem, size = model.backbone.patch_embed, model.backbone.img_size
    pixels = data_config_of(arch, None if isinstance(source, Mapping) else source)
    for key in ('mean', 'std'):  # repeated for more than three channels
        pixels[key] = tuple(pixels[key][i % len(pixels[key])] for i in range(stem.in_channels))
    model.data_config = dict(input_size=(stem.in_channels, *size), **pixels)
    if source is not None:
        model.report = load_weights(model, source)
    return model

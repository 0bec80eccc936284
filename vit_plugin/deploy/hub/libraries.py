"""The same classifier in timm and in transformers, where they have its architecture.

A library's config is written by ours, from the sizes of the model. Whether it is the same model is
not derived but tried: the library reads the folder, and its logits are compared.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vit_plugin.arch import parse_arch
from vit_plugin.arguments.fields import Section
from vit_plugin.deploy.deployed_module import relative_difference
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.weights.hub import TIMM_SCHEME

# Depths of the ResNet's stages -> a model of timm on it. Other sizes are arguments.
TIMM_HYBRIDS = {
    (): 'vit_tiny_r_s16_p8_224',
    (2, 2, 2, 2): 'vit_small_r26_s32_224',
    (3, 4, 9): 'vit_base_r50_s16_224',
    (3, 4, 6, 3): 'vit_large_r50_s32_224',
}
TIMM_POOLING = {'cls_token': 'token', 'avg_featmap': 'avg'}
# (type, form) of the MLP's activation -> timm's name and transformers'.
ACTIVATIONS = {
    ('GELU', 'none'): ('gelu', 'gelu'),
    ('GELU', 'tanh'): ('gelu_tanh', 'gelu_pytorch_tanh'),
}
# Logits may differ by this share of the largest one. timm's hybrids have an eps of their own, and
# a deep ResNet makes more of it.
TOLERANCE = 1e-2

Logits = Callable[[Tensor], Tensor]  # of normalized images


class Library(NamedTuple):
    """A library that reads a folder of the hub.

    Attributes:
        name: its name on the hub.
        weights: the format of its weights.
        config: model and pixels -> the content of ``config.json``.
        read: the folder -> logits of normalized images.
        example: how the folder is read, in Python.
    """

    name: str
    weights: str
    config: Callable[[TrainedModel, Mapping[str, Any]], Section]
    read: Callable[[Path], Logits]
    example: str


def _names(trained: TrainedModel) -> list[str]:
    """The names of the classes, which are their numbers if they are not known."""
    return trained.classes or [str(i) for i in range(trained.model.head.num_classes)]


def _activation(backbone: nn.Module) -> tuple[str, str]:
    act = backbone.numerics.act_cfg
    known = ACTIVATIONS.get((act['type'], act.get('approximate', 'none')))
    if known is None:
        raise ConfigError(f'its activation is {act["type"]}')
    return known


def _timm_config(trained: TrainedModel, pixels: Mapping[str, Any]) -> Section:
    backbone, names = trained.model.backbone, _names(trained)
    pooling = TIMM_POOLING.get(backbone.out_type)
    settings: Section = dict(img_size=list(backbone.img_size))
    if isinstance(backbone.arch, str) and backbone.arch.startswith(TIMM_SCHEME):
        name = backbone.arch.removeprefix(TIMM_SCHEME).partition('.')[0]
    else:
        name, sizes = _timm_name(backbone.patch_embed), parse_arch(backbone.arch)
        settings |= dict(
            patch_size=backbone.patch_embed.patch_size,
            embed_dim=sizes.embed_dims,
            depth=sizes.num_layers,
            num_heads=sizes.num_heads,
            mlp_ratio=sizes.feedforward_channels / sizes.embed_dims,
            class_token='cls_token' in backbone.prefix_tokens,
            global_pool=pooling,
            fc_norm=False,
            act_layer=_activation(backbone)[0],
        )
    stated = dict(global_pool=pooling) if pooling else {}
    return dict(
        architecture=name,
        num_classes=len(names),
        num_features=backbone.embed_dims,
        **stated,
        model_args=settings,
        label_names=names,
        pretrained_cfg=dict(
            pixels,
            num_classes=len(names),
            fixed_input_size=True,
            pool_size=None,
            first_conv=None,
            classifier='head',
        ),
    )


def _timm_name(stem: nn.Module) -> str:
    """A model of timm with this stem, whose other sizes are arguments."""
    kind = type(stem).__name__
    if kind == 'PatchEmbed':
        return 'vit_base_patch16_224'
    stages = getattr(getattr(stem, 'backbone', None), 'stages', ())
    depths = tuple(len(getattr(stage, 'blocks', ())) for stage in stages)
    if kind != 'ResNetEmbed' or depths not in TIMM_HYBRIDS:
        raise ConfigError(
            f'timm has no stem like it ({kind}{f" of stages {depths}" if depths else ""})'
        )
    return TIMM_HYBRIDS[depths]


def _timm_read(folder: Path) -> Logits:
    import timm

    return timm.create_model(f'local-dir:{folder}', pretrained=True).eval()


def _transformers_config(trained: TrainedModel, pixels: Mapping[str, Any]) -> Section:
    backbone, names = trained.model.backbone, _names(trained)
    if type(backbone.patch_embed).__name__ != 'PatchEmbed':
        raise ConfigError('the ViT of transformers has no CNN')
    sizes, (height, width) = parse_arch(backbone.arch), backbone.img_size
    return dict(
        architectures=['ViTForImageClassification'],
        model_type='vit',
        hidden_size=sizes.embed_dims,
        num_hidden_layers=sizes.num_layers,
        num_attention_heads=sizes.num_heads,
        intermediate_size=sizes.feedforward_channels,
        hidden_act=_activation(backbone)[1],
        layer_norm_eps=backbone.numerics.norm_cfg['eps'],
        image_size=height if height == width else [height, width],
        patch_size=backbone.patch_embed.patch_size,
        num_channels=backbone.in_channels,
        qkv_bias=True,
        id2label={str(i): name for i, name in enumerate(names)},
        label2id={name: i for i, name in enumerate(names)},
        dtype='float32',
    )


def _transformers_read(folder: Path) -> Logits:
    with needed_by('--to hf'):
        from transformers import AutoModelForImageClassification
    model, found = AutoModelForImageClassification.from_pretrained(folder, output_loading_info=True)
    wrong = sorted({str(name) for kind in found.values() for name in kind})
    if wrong:
        raise ConfigError(f'transformers has no place or no value for {wrong[0]}')
    return lambda images: model(pixel_values=images).logits


LIBRARIES = {
    'timm': Library(
        'timm',
        'timm',
        _timm_config,
        _timm_read,
        "import timm\n\nmodel = timm.create_model('{timm}', pretrained=True).eval()",
    ),
    'hf': Library(
        'transformers',
        'hf',
        _transformers_config,
        _transformers_read,
        'from transformers import pipeline\n\n'
        "print(pipeline('image-classification', '{name}')('photo.jpg'))",
    ),
}


@torch.no_grad()
def difference(trained: TrainedModel, logits: Logits) -> float:
    """The largest difference of a library's logits from the model's, relative to the largest.

    Images are random ones of the native size.
    """
    backbone = trained.model.backbone
    images = torch.randn(4, backbone.in_channels, *backbone.img_size)
    wanted = trained.model.head(trained.model.extract_feat(images))
    return relative_difference(logits(images), wanted)

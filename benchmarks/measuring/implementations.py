"""Build the same Vision Transformer from our code and from other libraries, with equal weights."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arch import Arch, ArchCfg, parse_arch
from vit_plugin.importable import make_importable
from vit_plugin.models import VisionTransformer
from vit_plugin.weights import FORMATS

OURS = 'vit_plugin'
PLAIN = 'vit_plugin, no passes'  # see vit_plugin.passes


class OneOutput(nn.Module):
    """Wraps a model to return one tensor: class token (B, C) or patches (B, C, h, w)."""

    def __init__(self, model: nn.Module, read: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self.read = model, read

    def forward(self, images: Tensor) -> Tensor:
        return self.read(self.model, images)


def _timm(arch: Arch, size: int) -> nn.Module:
    from timm.layers import StdConv2dSame
    from timm.models.resnetv2 import ResNetV2, create_resnetv2_stem
    from timm.models.vision_transformer import VisionTransformer as TimmVisionTransformer
    from timm.models.vision_transformer_hybrid import HybridEmbed

    stem = arch.patch_embed
    embed: dict[str, Any] = {}
    if stem['type'] == 'ResNetEmbed':
        standard: dict[str, Any] = dict(
            preact=False, stem_type='same', conv_layer=partial(StdConv2dSame, eps=1e-8)
        )
        depths = stem['stage_depths']
        backbone = (
            ResNetV2(depths, num_classes=0, global_pool='', **standard)
            if depths
            else create_resnetv2_stem(3, **standard)
        )
        embed = dict(embed_layer=partial(HybridEmbed, backbone=backbone))
    return TimmVisionTransformer(
        size,
        stem['patch_size'],
        num_classes=0,
        embed_dim=arch.embed_dims,
        depth=arch.num_layers,
        num_heads=arch.num_heads,
        mlp_ratio=arch.feedforward_channels / arch.embed_dims,
        **embed,
    )


def _mmpretrain(arch: Arch, size: int) -> nn.Module:
    make_importable()
    from mmpretrain.models import VisionTransformer as MMVisionTransformer

    sizes = {key: value for key, value in asdict(arch).items() if key != 'patch_embed'}
    return MMVisionTransformer(sizes, size, arch.patch_embed['patch_size'], out_type='raw')


def _transformers(arch: Arch, size: int) -> nn.Module:
    from transformers import ViTConfig, ViTModel

    return ViTModel(
        ViTConfig(
            hidden_size=arch.embed_dims,
            num_hidden_layers=arch.num_layers,
            num_attention_heads=arch.num_heads,
            intermediate_size=arch.feedforward_channels,
            image_size=size,
            patch_size=arch.patch_embed['patch_size'],
            layer_norm_eps=1e-6,
        ),
        add_pooling_layer=False,
    )


# Peer -> the function that builds it, the function that computes its tokens (B, 1 + h*w, C) from
# images, and the format of its weights (a key of FORMATS).
PEERS: dict[
    str, tuple[Callable[[Arch, int], nn.Module], Callable[[nn.Module, Tensor], Tensor], str]
] = {
    'timm': (_timm, lambda model, images: model.forward_features(images), 'timm'),
    'mmpretrain': (_mmpretrain, lambda model, images: model(images)[0], 'mmpretrain'),
    'transformers': (_transformers, lambda model, images: model(images).last_hidden_state, 'hf'),
}
HYBRIDS = ('timm',)  # the peers that have hybrids


def build_ours(
    arch: str | ArchCfg, size: int, output: str, options: Mapping[str, Any] | None = None
) -> OneOutput:
    """Our backbone with timm's numerics, which all peers use, and with ``options``.

    Noise is added to all weights, since zeros would hide errors in other weights.
    """
    model = VisionTransformer(
        arch, size, **{'out_type': output, 'numerics': 'timm', **(options or {})}
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)
    return OneOutput(model, lambda model, images: model(images)[0])


def build_peer(
    name: str, arch: str | Mapping[str, Any], size: int, output: str, ours: OneOutput
) -> OneOutput:
    """Build a peer with the weights of ``ours``.

    Raises:
        ModuleNotFoundError: if the peer is not installed.
        NotImplementedError: if it has no such model.
    """
    sizes = parse_arch(arch)
    if sizes.patch_embed['type'] != 'PatchEmbed' and name not in HYBRIDS:
        raise NotImplementedError(f'it has no {arch}')
    build, tokens, weight_format = PEERS[name]
    peer, state = build(sizes, size), ours.model.state_dict()
    # The plan, which maps our weights to the peer's, is made from the peer's own keys, so that it
    # works with the names of any release.
    peer.load_state_dict(
        {
            key: part
            for step in FORMATS[weight_format].plan(peer.state_dict())
            for key, part in step.to_theirs(state[step.ours], sizes.num_heads).items()
        }
    )

    def featmap(model: nn.Module, images: Tensor) -> Tensor:
        x = tokens(model, images)[:, 1:].transpose(1, 2)  # (B, C, h*w) of a square grid
        side = round(x.shape[2] ** 0.5)
        return x.unflatten(2, (side, side)).contiguous()

    return OneOutput(
        peer, featmap if output == 'featmap' else lambda model, images: tokens(model, images)[:, 0]
    )

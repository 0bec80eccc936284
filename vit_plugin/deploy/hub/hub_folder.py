"""The content of a hub folder for another library, and the properties of a model that decide it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.necks.token_pooling import TokenPooling

HUB_POOLING = dict(cls_token='cls', avg_featmap='avg')  # by the backbone's out_type
DISTILLED_HEAD = 'DistilledViTClsHead'
PLAIN_STEM = 'PatchEmbed'
# Computes with a folder's model: normalized images -> logits, or features without a head.
OutputFunction = Callable[[Tensor], Tensor]


class HubFolder(NamedTuple):
    """A candidate folder for the same model in another library.

    Attributes:
        config: the content of ``config.json``.
        weights: the weights, by that library's names.
    """

    config: dict[str, Any]
    weights: Mapping[str, Tensor]


def hub_class_names(trained: TrainedModel) -> list[str]:
    """The class names: numbers if unknown, empty without a head."""
    if not trained.model.with_head:
        return []
    return trained.classes or [str(i) for i in range(trained.model.head.num_classes)]


def hub_pooling(model: nn.Module) -> str:
    """How tokens become the input of the head, or the features.

    It is ``'distilled'`` for a head with two tokens, else the mode of a pooling neck, else the
    backbone's ``out_type``: ``'cls'`` or ``'avg'`` if transformers and timm have it too.
    """
    if model.with_head and type(model.head).__name__ == DISTILLED_HEAD:
        return 'distilled'
    if model.with_neck and isinstance(model.neck, TokenPooling):
        return str(model.neck.mode)
    out_type = str(model.backbone.out_type)
    return HUB_POOLING.get(out_type, out_type)


def norm_eps(backbone: nn.Module) -> float:
    """The eps of the encoder's norms. Where the config leaves it out, it is torch's default."""
    norm_cfg = backbone.numerics.norm_cfg
    default = torch.finfo(torch.float32).eps if norm_cfg['type'] == 'RMSN' else 1e-5
    return float(norm_cfg.get('eps') or default)


@torch.no_grad()
def hub_outputs(trained: TrainedModel, images: Tensor) -> Tensor:
    """Logits (N, num_classes) of normalized images (N, C, H, W), or features without a head."""
    features = trained.model.extract_feat(images)
    return trained.model.head(features) if trained.model.with_head else features[-1]

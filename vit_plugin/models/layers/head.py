"""The layers of a classifier's head, without a framework around them."""

from collections import OrderedDict
from collections.abc import Mapping
from math import log
from typing import Any

from torch import nn

from .numerics import build_activation
from .std_conv import lecun_normal_


def head_layers(
    num_classes: int,
    in_channels: int,
    hidden_dim: int | None = None,
    act_cfg: Mapping[str, Any] = dict(type='Tanh'),
) -> nn.Sequential:
    """Linear, or pre-logits with their activation and Linear (arXiv:2010.11929, Section 3.1).

    Args:
        num_classes: number of classes.
        in_channels: width of the feature.
        hidden_dim: width of the pre-logits. None means that there are none.
        act_cfg: activation after the pre-logits.
    """
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    if hidden_dim is not None:
        layers['pre_logits'] = nn.Linear(in_channels, hidden_dim)
        layers['act'] = build_activation(act_cfg)
    layers['head'] = nn.Linear(hidden_dim or in_channels, num_classes)
    return nn.Sequential(layers)


def reset_head(layers: nn.Sequential, prior_prob: float | None = None) -> None:
    """Initialize :func:`head_layers` as the authors do: zero classifier, pre-logits as in flax.

    Args:
        layers: the layers.
        prior_prob: the probability of each class at the start, for a sigmoid loss. None means a
            bias of zero.
    """
    for name, layer in layers.named_children():
        if name == 'pre_logits':
            lecun_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
        elif name in ('head', 'head_dist'):
            nn.init.zeros_(layer.weight)
            nn.init.constant_(layer.bias, log(prior_prob / (1 - prior_prob)) if prior_prob else 0.0)

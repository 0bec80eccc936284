"""The classification head."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.registry import MODELS
from vit_plugin.weights.load import fit_head_state_dict

from ..layers.numerics import build_activation
from ..layers.std_conv import lecun_normal_

with needed_by('ViTClsHead'):
    from mmpretrain.models.heads import ClsHead


@MODELS.register_module()
class ViTClsHead(ClsHead):
    """Linear, or pre-logits and Linear (arXiv:2010.11929, Section 3.1).

    Args:
        num_classes: number of classes.
        in_channels: width of the backbone's (or neck's) feature.
        hidden_dim: width of the pre-logits layer of pre-training; None for none.
        act_cfg: activation after the pre-logits; tanh in the paper.
        init_cfg: MMEngine's initialisation config. Without it the classifier starts at zero and the
            pre-logits as flax's default, as the authors' do.
        **kwargs: ``loss``, ``topk``, ``cal_acc`` of MMPretrain's ``ClsHead``.

    Shape: the last of the features, (B, in_channels) -> (B, num_classes).

    Raises:
        ConfigError: if a number is not positive; in the forward if the feature is not ``in_channels`` wide.
    """

    def __init__(self, num_classes: int, in_channels: int, hidden_dim: int | None = None,
                 act_cfg: Mapping[str, Any] = dict(type='Tanh'), init_cfg: Mapping[str, Any] | None = None,
                 **kwargs: Any) -> None:
        super().__init__(init_cfg=init_cfg, **kwargs)
        for name, number in dict(num_classes=num_classes, in_channels=in_channels, hidden_dim=hidden_dim).items():
            if number is not None and number <= 0:
                raise ConfigError(f'{name}={number} must be a positive integer')
        self.num_classes, self.in_channels, self.hidden_dim = num_classes, in_channels, hidden_dim
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        if hidden_dim is not None:
            layers['pre_logits'] = nn.Linear(in_channels, hidden_dim)
            layers['act'] = build_activation(act_cfg)
        layers['head'] = nn.Linear(hidden_dim or in_channels, num_classes)
        self.layers = nn.Sequential(layers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The authors' initialisation."""
        for name, layer in self.layers.named_children():
            if name == 'pre_logits':
                lecun_normal_(layer.weight)
                nn.init.zeros_(layer.bias)
            elif name == 'head':
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any) -> None:
        """Leave the classifier at its initialisation, and say so, where the weights are of other classes."""
        fit_head_state_dict(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """What the classifier sees: (B, hidden_dim), or the feature itself."""
        x = feats[-1]
        if x.ndim != 2 or x.shape[1] != self.in_channels:
            raise ConfigError(f'ViTClsHead got a feature of shape {tuple(x.shape)} where it wants (B, '
                              f'in_channels={self.in_channels}): set in_channels to the width of the backbone, '
                              "and pool 'raw' tokens or feature maps with the neck TokenPooling.")
        return self.layers[:-1](x)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        return self.layers.head(self.pre_logits(feats))

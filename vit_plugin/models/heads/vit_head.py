"""The classification head."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from torch import Tensor

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import InitConfig, PositiveInt, Typed
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS, needed_class

from ..layers.head import head_layers, reset_head
from ..loading.hooks import keep_shards

# Without MMPretrain, a stand-in from vit_plugin.projects.
ClsHead: Any = needed_class('ViTClsHead', 'mmpretrain.models.heads:ClsHead')
Features = Sequence[Any]  # one tensor per output of the backbone, or MMPretrain's list of them


@MODELS.register_module()
class ViTClsHead(ClsHead):
    """A linear classifier with an optional pre-logits layer (arXiv:2010.11929, Section 3.1).

    Args:
        num_classes: number of classes.
        in_channels: width of the feature from the backbone or neck.
        hidden_dim: width of the pre-logits layer, as in pre-training. None means no such layer.
        act_cfg: activation after the pre-logits, tanh in the paper.
        prior_prob: the probability of each class at the start, for a sigmoid loss such as the focal
            loss (arXiv:1708.02002, Section 3.3). None means that the bias starts at zero.
        init_cfg: MMEngine's initialization config. By default, as in the authors' code, the
            classifier starts at zero and the pre-logits have flax's default initialization.
        **kwargs: ``loss``, ``topk``, ``cal_acc`` of MMPretrain's ``ClsHead``.

    Shape: (B, in_channels) -> (B, num_classes). The last of several features is used, and its last
    entry if it is a list in MMPretrain's format, such as [patch tokens, class token].

    Raises:
        ConfigError: if the loss is for a different number of classes, or if ``topk`` exceeds it. In
            the forward, if the feature is not ``in_channels`` wide.
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        in_channels: PositiveInt,
        hidden_dim: PositiveInt | None = None,
        act_cfg: Typed = dict(type='Tanh'),
        prior_prob: Annotated[float, Field(gt=0, lt=1)] | None = None,
        init_cfg: InitConfig = None,
        **kwargs: Any,
    ) -> None:
        with as_config_error('ViTClsHead: loss'):
            super().__init__(init_cfg=init_cfg, **kwargs)
        if np.max(self.topk) > num_classes:
            raise ConfigError(
                f'ViTClsHead: topk={self.topk} asks for more than the num_classes={num_classes}; '
                'take smaller numbers.'
            )
        self._check_loss(num_classes)
        self.num_classes, self.in_channels, self.hidden_dim = num_classes, in_channels, hidden_dim
        self.prior_prob = prior_prob
        self.layers = head_layers(num_classes, in_channels, hidden_dim, act_cfg)
        self.register_load_state_dict_pre_hook(keep_shards)
        self.reset_parameters()

    def _check_loss(self, num_classes: int) -> None:
        """Raise a ``ConfigError`` if a loss, maybe nested, is for a different number of classes."""
        for loss in self.loss_module.modules():
            lengths = dict(
                num_classes=getattr(loss, 'num_classes', None),
                **{
                    name: len(weights)
                    for name in ('class_weight', 'pos_weight')
                    if isinstance(weights := getattr(loss, name, None), (list, tuple))
                },
            )
            for name, number in lengths.items():
                if number not in (None, num_classes):
                    raise ConfigError(
                        f'ViTClsHead: {name} of the loss {type(loss).__name__} is for {number} '
                        f'classes, and num_classes is {num_classes}; make them equal, or leave '
                        f'{name} out.'
                    )

    def reset_parameters(self) -> None:
        """Initialize as the authors do."""
        reset_head(self.layers, self.prior_prob)

    def pre_logits(self, feats: Features) -> Tensor:
        """The input of the classifier: the pre-logits (B, hidden_dim), or the feature itself."""
        x = feats[-1][-1] if isinstance(feats[-1], (list, tuple)) else feats[-1]
        if x.ndim != 2 or x.shape[1] != self.in_channels:
            raise ConfigError(
                f'ViTClsHead got a feature of shape {tuple(x.shape)} but takes (B, '
                f'in_channels={self.in_channels}): set in_channels to the width of the backbone, '
                "and pool 'raw' tokens or feature maps with the neck TokenPooling."
            )
        *hidden, _ = self.layers
        for layer in hidden:
            x = layer(x)
        return x

    def forward(self, feats: Features) -> Tensor:
        return self.layers.head(self.pre_logits(feats))

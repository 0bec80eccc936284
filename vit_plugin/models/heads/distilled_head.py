"""DeiT's head with two classifiers."""

from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import Fraction, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from .vit_head import Features, ViTClsHead

# A larger temperature would make all classes equal.
Temperature = Annotated[float, Field(gt=0, le=1000)]


@MODELS.register_module()
class DistilledViTClsHead(ViTClsHead):
    """One classifier each for the class and distillation tokens (arXiv:2012.12877, Section 4).

    In training, the first learns the labels and the second learns from the teacher. At inference,
    their logits are averaged. The backbone needs ``encoder=dict(dist_token=1), out_type='raw'``.

    Args:
        num_classes, in_channels, **kwargs: see :class:`ViTClsHead`. There is no ``hidden_dim``.
        distillation: what the second classifier learns. ``'hard'`` is the teacher's decision
            (Equation 3), ``'soft'`` its distribution (Equation 2). ``'none'`` is the labels, for
            fine-tuning without a teacher.
        alpha: weight of the teacher's loss. The loss of the labels has the weight 1 - alpha.
        tau: temperature of ``'soft'``.

    Shape: tokens (B, N, in_channels) -> (B, num_classes). Only the first two tokens are used. A
    list in MMPretrain's form ends with the two, (B, in_channels) each.

    Raises:
        ConfigError: for ``hidden_dim``. In the forward, if the features lack one of the two tokens,
            or have a width other than ``in_channels``.
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        in_channels: PositiveInt,
        distillation: Literal['hard', 'soft', 'none'] = 'hard',
        alpha: Fraction = 0.5,
        tau: Temperature = 3.0,
        **kwargs: Any,
    ) -> None:
        if kwargs.get('hidden_dim') is not None:
            raise ConfigError(
                'DistilledViTClsHead: hidden_dim is the width of pre-logits, which its classifiers '
                'do not have; leave it out.'
            )
        super().__init__(num_classes, in_channels, **kwargs)
        self.distillation, self.alpha, self.tau = distillation, alpha, tau
        self.layers.head_dist = nn.Linear(in_channels, num_classes)
        self.reset_parameters()  # again, since it now has the second classifier

    def classify(self, feats: Features) -> tuple[Tensor, Tensor]:
        """The logits (B, num_classes) of the class token and of the distillation token."""
        x = _tokens(feats)
        if x.ndim != 3 or x.shape[1] < 2 or x.shape[2] != self.in_channels:
            raise ConfigError(
                f'DistilledViTClsHead got {tuple(x.shape)} but takes tokens (B, N, '
                f"in_channels={self.in_channels}): give the backbone out_type='raw' and "
                'encoder=dict(dist_token=1).'
            )
        return self.layers.head(x[:, 0]), self.layers.head_dist(x[:, 1])

    def pre_logits(self, feats: Features) -> Tensor:
        """The input of the classifiers: the two tokens (B, 2, in_channels)."""
        return _tokens(feats)[:, :2]

    def forward(self, feats: Features) -> Tensor:
        class_logits, distillation_logits = self.classify(feats)
        return (class_logits + distillation_logits) / 2

    def loss(
        self, feats: Features, data_samples: list, teacher: Tensor | None = None, **kwargs: Any
    ) -> dict:
        """Compute the losses.

        Args:
            feats: the output of the backbone.
            data_samples: data samples with the labels.
            teacher: the teacher's logits (B, num_classes).

        Raises:
            ConfigError: if the distillation needs a teacher but there is none.
        """
        class_logits, distillation_logits = self.classify(feats)
        losses = self._get_loss(class_logits, data_samples, **kwargs)
        if self.distillation == 'none':
            distillation_loss = self._get_loss(distillation_logits, data_samples, **kwargs)['loss']
        elif teacher is None:
            raise ConfigError(
                f'distillation={self.distillation!r} needs a teacher: train in a '
                "vit_plugin.Distiller, or set distillation='none'."
            )
        else:
            distillation_loss = logit_loss(
                distillation_logits, teacher, self.tau, self.distillation
            )
        losses['loss'] = (1 - self.alpha) * losses['loss']
        losses['loss_distillation'] = self.alpha * distillation_loss
        return losses


def _tokens(feats: Features) -> Tensor:
    """Tokens (B, N, C), of which the first two are the class and the distillation token."""
    last = feats[-1]
    return torch.stack(tuple(last[-2:]), dim=1) if isinstance(last, (list, tuple)) else last


def logit_loss(student: Tensor, teacher: Tensor, temperature: float, target: str) -> Tensor:
    """The loss of a student's logits (B, num_classes), given the teacher's.

    Args:
        student, teacher: the logits.
        temperature, target: see
            :class:`~vit_plugin.projects.distillation.losses.LogitDistillation`.
    """
    if target == 'hard':
        return F.cross_entropy(student, teacher.argmax(dim=1))
    student, teacher = (F.log_softmax(x / temperature, dim=1) for x in (student, teacher))
    return temperature**2 * F.kl_div(student, teacher, reduction='batchmean', log_target=True)

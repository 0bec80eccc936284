"""DeiT's head of two classifiers."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.registry import MODELS

from .vit_head import ViTClsHead

with needed_by('DistilledClassifier'):
    from mmpretrain.models.classifiers import ImageClassifier
    from mmpretrain.registry import MODELS as HOST_MODELS

DISTILLATIONS = ('hard', 'soft', 'none')


@MODELS.register_module()
class DistilledViTClsHead(ViTClsHead):
    """A classifier of the class token and one of the distillation token (arXiv:2012.12877, Section 4).

    In training the first learns the labels and the second the teacher; at inference their logits are averaged. The
    backbone gives both tokens with ``extra_tokens=dict(dist_token=1), out_type='raw'``.

    Args:
        num_classes, in_channels, and the rest: see :class:`ViTClsHead`.
        distillation: ``'hard'`` teaches the teacher's decision (Equation 3), ``'soft'`` its distribution (Equation 2),
            ``'none'`` the labels to both, for fine-tuning without a teacher.
        alpha: weight of the teacher's part, against 1 - alpha for the labels'.
        tau: temperature of ``'soft'``.

    Shape: tokens (B, N, in_channels), of which the first two count -> (B, num_classes).

    Raises:
        ConfigError: for an unknown distillation, or features without both tokens.
    """

    def __init__(self, num_classes: int, in_channels: int, distillation: str = 'hard', alpha: float = 0.5,
                 tau: float = 3., **kwargs: Any) -> None:
        if distillation not in DISTILLATIONS:
            raise ConfigError(f'distillation={distillation!r} is not one of {", ".join(DISTILLATIONS)}.')
        super().__init__(num_classes, in_channels, **kwargs)
        self.distillation, self.alpha, self.tau = distillation, alpha, tau
        self.layers.head_dist = nn.Linear(in_channels, num_classes)
        nn.init.zeros_(self.layers.head_dist.weight)
        nn.init.zeros_(self.layers.head_dist.bias)

    def classify(self, feats: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """The logits (B, num_classes) of the class token and of the distillation token."""
        x = feats[-1]
        if x.ndim != 3 or x.shape[1] < 2 or x.shape[2] != self.in_channels:
            raise ConfigError(f'DistilledViTClsHead got {tuple(x.shape)} where it wants tokens (B, N, in_channels='
                              f"{self.in_channels}): give the backbone out_type='raw' and "
                              'extra_tokens=dict(dist_token=1).')
        return self.layers.head(x[:, 0]), self.layers.head_dist(x[:, 1])

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """What the classifiers see: the two tokens (B, 2, in_channels)."""
        return feats[-1][:, :2]

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        return sum(self.classify(feats)) / 2

    def loss(self, feats: tuple[Tensor, ...], data_samples: list, teacher: Tensor | None = None, **kwargs: Any) -> dict:
        """The losses.

        Args:
            feats: what the backbone gives.
            data_samples: with the labels.
            teacher: the teacher's logits (B, num_classes).

        Raises:
            ConfigError: if the distillation needs a teacher and there is none.
        """
        labelled, distilled = self.classify(feats)
        losses = self._get_loss(labelled, data_samples, **kwargs)
        if self.distillation == 'none':
            second = self._get_loss(distilled, data_samples, **kwargs)['loss']
        elif teacher is None:
            raise ConfigError(f'distillation={self.distillation!r} needs a teacher: train in a '
                              "vit_plugin.DistilledClassifier, or set distillation='none'.")
        elif self.distillation == 'hard':
            second = F.cross_entropy(distilled, teacher.argmax(dim=1))
        else:
            second = self.tau ** 2 * F.kl_div(F.log_softmax(distilled / self.tau, dim=1),
                                              F.log_softmax(teacher / self.tau, dim=1), log_target=True,
                                              reduction='batchmean')
        losses['loss'] = (1 - self.alpha) * losses['loss']
        losses['loss_distillation'] = self.alpha * second
        return losses


@MODELS.register_module()
class DistilledClassifier(ImageClassifier):
    """MMPretrain's ImageClassifier beside a teacher, any classifier of MMPretrain, that does not learn.

    Args:
        teacher: config of the teacher; its weights come with ``init_cfg=dict(type='Pretrained', ...)``. Its data must
            be normalised like the student's. The teacher is not saved in the checkpoints.
        **kwargs: of ``ImageClassifier``.
    """

    def __init__(self, teacher: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        model = HOST_MODELS.build(dict(teacher)).requires_grad_(False).eval()
        # Kept from the module's children, so that it is neither trained, nor saved, nor wrapped by DDP.
        object.__setattr__(self, 'teacher', model)

    def init_weights(self) -> None:
        super().init_weights()
        self.teacher.init_weights()

    def loss(self, inputs: Tensor, data_samples: list) -> dict:
        """The head's losses, told what the teacher says of the same images."""
        if next(self.teacher.parameters()).device != inputs.device:
            self.teacher.to(inputs.device)
        with torch.no_grad():
            said = self.teacher(inputs, mode='tensor')
        return self.head.loss(self.extract_feat(inputs), data_samples, teacher=said)

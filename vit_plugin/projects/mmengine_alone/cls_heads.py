"""Replacements of MMPretrain's classification heads, with its methods and parameter names."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.model import BaseModule
from mmengine.structures import BaseDataElement
from torch import Tensor, nn

from vit_plugin.arguments.fields import Fraction, InitConfig, PositiveInt, PositiveInts
from vit_plugin.arguments.foreign import Part

from .image_classifier import build_component

LINEAR_INIT: Any = dict(type='Normal', layer='Linear', std=0.01)
Samples = Sequence[BaseDataElement]


class ClsHead(BaseModule):
    """Single-label loss and prediction.

    Args:
        loss: the config of its loss.
        topk: the ranks for top-k accuracy, which subclasses may log.
        init_cfg: MMEngine's initialization config.
    """

    def __init__(
        self,
        loss: Part = dict(type='CrossEntropyLoss'),
        topk: PositiveInt | PositiveInts = (1,),
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        self.topk, self.loss_module = topk, build_component(loss)

    def forward(self, feats: Sequence[Any]) -> Tensor:
        """The logits of the last of the features."""
        return feats[-1]

    def loss(self, feats: Sequence[Any], data_samples: Samples, **kwargs: Any) -> dict[str, Tensor]:
        """The loss of the labels. ``kwargs`` are further arguments of the loss module."""
        return self._get_loss(self(feats), data_samples, **kwargs)

    def predict(self, feats: Sequence[Any], data_samples: Samples | None = None) -> Samples:
        """The samples with ``pred_score`` and ``pred_label``."""
        scores, labels = self._scores_and_labels(self(feats))
        samples = data_samples or [BaseDataElement() for _ in scores]
        for sample, score, label in zip(samples, scores, labels, strict=True):
            sample.pred_score, sample.pred_label = score, label
        return samples

    def _get_loss(self, scores: Tensor, samples: Samples, **kwargs: Any) -> dict[str, Tensor]:
        """The loss of logits (N, num_classes). Mixed images have ``gt_score`` as their target."""
        if 'gt_score' in samples[0]:
            target = torch.stack([sample.gt_score for sample in samples])
        else:
            target = self._loss_target([sample.gt_label for sample in samples])
        return dict(loss=self.loss_module(scores, target, avg_factor=len(scores), **kwargs))

    def _loss_target(self, labels: list[Tensor]) -> Tensor:
        """The target of the loss from the labels of each image: class indices (N,)."""
        return torch.cat(labels)

    def _scores_and_labels(self, scores: Tensor) -> tuple[Tensor, Any]:
        """Logits (N, num_classes) -> scores of the same shape, and the label or labels of each."""
        scores = F.softmax(scores, dim=1)
        return scores, scores.argmax(dim=1, keepdim=True)


class LinearClsHead(ClsHead):
    """:class:`ClsHead` with a linear layer: (B, in_channels) -> (B, num_classes)."""

    def __init__(
        self,
        num_classes: PositiveInt,
        in_channels: PositiveInt,
        init_cfg: InitConfig = LINEAR_INIT,
        **kwargs: Any,
    ) -> None:
        super().__init__(init_cfg=init_cfg, **kwargs)
        self.num_classes, self.in_channels = num_classes, in_channels
        self.fc = nn.Linear(in_channels, num_classes)

    def forward(self, feats: Sequence[Any]) -> Tensor:
        return self.fc(feats[-1])


class MultiLabelLinearClsHead(LinearClsHead):
    """Multi-label loss and prediction, by the probability of each class.

    Args:
        loss: see :class:`ClsHead`.
        thr: the minimum score at which a class is predicted. Default: 0.5 without ``topk``.
        topk: without ``thr``, the number of classes that are predicted for each image.
        **kwargs: further arguments of :class:`LinearClsHead`.
    """

    def __init__(
        self,
        loss: Part = dict(type='CrossEntropyLoss', use_sigmoid=True),
        thr: Fraction | None = None,
        topk: PositiveInt | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(loss=loss, **kwargs)
        self.thr = 0.5 if thr is None and topk is None else thr
        self.num_predicted = topk

    def _loss_target(self, labels: list[Tensor]) -> Tensor:
        """1 for each class of an image, else 0: (N, num_classes)."""
        return torch.stack([F.one_hot(label, self.num_classes).sum(0) for label in labels]).float()

    def _scores_and_labels(self, scores: Tensor) -> tuple[Tensor, Any]:
        scores = torch.sigmoid(scores)
        if self.thr is None and self.num_predicted is not None:
            return scores, scores.topk(self.num_predicted).indices
        return scores, [torch.where(score >= self.thr)[0] for score in scores]

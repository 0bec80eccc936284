"""Replacements of MMPretrain's classification metrics."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.evaluator import BaseMetric
from torch import Tensor

from vit_plugin.arguments.fields import PositiveInt, PositiveInts
from vit_plugin.errors import ConfigError


class Accuracy(BaseMetric):
    """``accuracy/top1`` and others: how often the label is among the top k classes, in percent.

    Args:
        topk: the values of k.
        **kwargs: arguments of MMEngine's ``BaseMetric``.

    Raises:
        ConfigError: when it evaluates, if there are fewer than k classes.
    """

    default_prefix = 'accuracy'

    def __init__(self, topk: PositiveInt | PositiveInts = (1,), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.topk = [topk] if isinstance(topk, int) else topk

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Keep the scores and the labels of each image."""
        for sample in data_samples:
            self.results.append((sample['pred_score'].cpu(), sample['gt_label'].cpu()))

    def compute_metrics(self, results: list) -> dict[str, float]:
        """The accuracies. As in MMPretrain, a label with score 0 never counts as correct."""
        scores, labels = (torch.stack(values) for values in zip(*results, strict=True))
        if max(self.topk) > scores.shape[1]:
            raise ConfigError(
                f'Accuracy: topk has {max(self.topk)}, and there are only {scores.shape[1]} '
                'classes; leave it out.'
            )
        top_scores, top_classes = scores.float().topk(max(self.topk))
        hits = ((top_classes == labels) & (top_scores > 0)).float()
        return {f'top{k}': hits[:, :k].sum().mul(100.0 / len(labels)).item() for k in self.topk}


class AveragePrecision(Accuracy):
    """``multi-label/mAP``: the mean over classes of their average precision, in percent.

    Args:
        **kwargs: arguments of MMEngine's ``BaseMetric``.
    """

    default_prefix = 'multi-label'

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def compute_metrics(self, results: list) -> dict[str, float]:
        """The mean over classes."""
        scores = torch.stack([score for score, _ in results]).T
        # Scores and truth are (num_classes, N).
        truth = torch.stack([F.one_hot(label, len(scores)).sum(0) for _, label in results]).T
        precisions = torch.stack([*map(average_precision, scores, truth)])
        return dict(mAP=precisions.mean().mul(100.0).item())


def average_precision(scores: Tensor, truth: Tensor) -> Tensor:
    """The average precision of a class.

    Args:
        scores: its score in each image (N,).
        truth: 1 for the images that have the class, else 0 (N,).
    """
    positive = truth[torch.argsort(scores, descending=True)] == 1
    hits = positive.cumsum(0)
    precision = torch.where(positive, hits, 0) / torch.arange(1, len(hits) + 1).float()
    return precision.sum() / max(hits[-1].item(), torch.finfo().eps)

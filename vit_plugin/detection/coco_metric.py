"""COCO's metric, computed by faster-coco-eval."""

from typing import Any
from unittest import mock

from vit_plugin.errors import needed_by
from vit_plugin.registry import METRICS

with needed_by('FasterCocoMetric'):
    from mmdet.evaluation.metrics import coco_metric


@METRICS.register_module()
class FasterCocoMetric(coco_metric.CocoMetric):
    """MMDetection's ``CocoMetric``, evaluated by faster-coco-eval with the same figures.

    The arguments are those of ``CocoMetric``.

    Raises:
        MissingExtraError: when it evaluates, if faster-coco-eval is not installed.
    """

    renamed_arguments = {'file_client_args': 'backend_args=...'}

    def compute_metrics(self, results: list) -> dict[str, Any]:
        with needed_by('FasterCocoMetric'):
            from faster_coco_eval import COCOeval_faster
        # MMDetection has no argument for it.
        with mock.patch.object(coco_metric, 'COCOeval', COCOeval_faster):
            return super().compute_metrics(results)

"""Depth metrics per image, also for predictions with unknown scale and shift."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from vit_plugin.arguments.fields import Positive
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import METRICS

from .depth_head import MIN_DEPTH, inverse
from .depth_losses import fit_scale_and_shift

with needed_by('DepthMetric'):
    make_importable()
    from mmseg.evaluation.metrics import DepthMetric as MMSegDepthMetric

METRIC_NAMES = {  # MMSegmentation's names -> the names in papers
    'abs_rel': 'AbsRel',
    'rmse': 'RMSE',
    'rmse_log': 'RMSElog',
    'log10': 'log10',
    'd1': 'delta1',
    'd2': 'delta2',
    'd3': 'delta3',
}


@METRICS.register_module()
class DepthMetric(MMSegDepthMetric):
    """The means over images of ``AbsRel``, ``RMSE`` in meters, ``delta1`` to ``delta3``, and more.

    The formulas are MMSegmentation's. Its own class accepts no list of metrics (it compares with
    ``[tuple, list]``), returns NaN if one image has no known pixel, and infinity if one prediction
    is 0.

    Args:
        min_depth_eval, max_depth_eval: bounds in meters. Pixels with a true depth outside are
            ignored; predictions are clipped to the bounds.
        mode: ``'disparity'`` fits each predicted disparity to the true one by a scale and a shift,
            as for MiDaS (arXiv:1907.01341, Section 6). ``'depth'`` takes meters.
        crop_type: ``'nyu_crop'`` evaluates the crop of Eigen et al. for NYU.
        collect_device, prefix: those of MMEngine's ``BaseMetric``.

    Raises:
        ConfigError: when it evaluates, if no image has a known pixel.
    """

    # Metrics for which lower is better. ValidationRecord reads this.
    lower_is_better = ('AbsRel', 'RMSE', 'RMSElog', 'log10')

    def __init__(
        self,
        min_depth_eval: Positive = MIN_DEPTH,
        max_depth_eval: Positive = 1000.0,
        mode: Literal['depth', 'disparity'] = 'depth',
        crop_type: Literal['nyu_crop'] | None = None,
        collect_device: Literal['cpu', 'gpu'] = 'cpu',
        prefix: str | None = None,
    ) -> None:
        super().__init__(
            min_depth_eval=min_depth_eval,
            max_depth_eval=max_depth_eval,
            crop_type=crop_type,
            collect_device=collect_device,
            prefix=prefix,
        )
        self.mode = mode

    def process(self, data_batch: Any, data_samples: Sequence[Mapping[str, Any]]) -> None:
        """Score the images that have known pixels."""
        for sample in data_samples:
            pred = sample['pred_depth_map']['data'][0].float()
            target = sample['gt_depth_map']['data'][0].to(pred)
            known = self._get_eval_mask(target)
            if known.any():
                depths = self.in_meters(pred[known], target[known])
                scores = self._calc_all_metrics(target[known], depths)
                self.results.append({name: scores[name] for name in METRIC_NAMES})

    def in_meters(self, pred: Tensor, target: Tensor) -> Tensor:
        """Predictions (N,) as depths in meters, within the bounds."""
        if self.mode == 'disparity':
            scale, shift = fit_scale_and_shift(pred, inverse(target))
            pred = 1 / (scale * pred + shift).clamp(min=1 / self.max_depth_eval)
        return pred.clamp(self.min_depth_eval, self.max_depth_eval)

    def compute_metrics(self, results: list[dict[str, float]]) -> dict[str, float]:
        """The mean of each score over the images."""
        if not results:
            raise ConfigError(
                f'DepthMetric: no pixel of the data has a depth between {self.min_depth_eval} and '
                f'{self.max_depth_eval} meters; correct the scale of the depth maps, or '
                'min_depth_eval and max_depth_eval.'
            )
        return {
            title: float(torch.tensor([scores[name] for scores in results]).double().mean())
            for name, title in METRIC_NAMES.items()
        }

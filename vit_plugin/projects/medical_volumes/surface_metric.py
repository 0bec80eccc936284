"""Dice, the 95 % Hausdorff distance and the boundary F1 of each case: an image or a volume."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from mmengine.evaluator import BaseMetric

from vit_plugin.arguments.fields import Positive
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.registry import METRICS


class SurfaceScores(NamedTuple):
    """The scores of one class in one case, see :class:`SurfaceMetric`. Means leave NaN out.

    Attributes:
        dice: Dice, from 0 to 1.
        hd95: the 95 % Hausdorff distance, in the unit of ``spacing``.
        boundary_f1: boundary F1, from 0 to 1.
    """

    dice: float
    hd95: float
    boundary_f1: float


@METRICS.register_module()
class SurfaceMetric(BaseMetric):
    """The mean over cases, then over classes, of three scores of a segmentor.

    - ``mDice``: ``2 |P and T| / (|P| + |T|)`` of the predicted and the true pixels, in percent.
    - ``mHD95``: the 95th percentile of the distances from each surface to the other, both ways
      together, as in medpy. A surface is the pixels of a class at the border of the image, or with
      a neighbor of another class.
    - ``mBF1``: F1 of the fractions of the two surfaces that are within ``tolerance`` of the other,
      in percent (Csurka et al. 2013, "What is a good evaluation measure for semantic
      segmentation?").

    A case is an image, or all slices with the same ``case`` in their metainfo. These become a
    volume, in the order of ``slice`` where it is given, and else in that of their paths:
    ``slice_2`` before ``slice_10``. ``PackSegInputs`` passes ``case`` and ``slice`` on if its
    ``meta_keys`` have them.

    Args:
        tolerance: distance within which boundaries agree.
        spacing: size of a pixel, or of a voxel (slices, rows, columns). Distances are in its unit.
        ignore_background: whether class 0 is left out of the means.
        ignore_index: label of ignored pixels.
        absent: how to score a class that a case lacks in the prediction, in the truth or in both.
            With ``'left_out'``, Dice and F1 are 0 and the distance is left out of the mean. If both
            lack the class, all scores are left out. ``'transunet'`` is the rule of ``test.py`` of
            TransUNet's authors: Dice and F1 are 1 if the class is predicted and otherwise 0, and
            the distance is 0.
        collect_device, prefix: those of MMEngine's ``BaseMetric``.

    Raises:
        ConfigError: when it evaluates, if ``spacing`` does not fit the cases, if the slices of a
            case have several sizes, or if the background is the only class and is left out.
        MissingExtraError: if scipy is not installed.
    """

    lower_is_better = ('mHD95',)  # metrics that are errors, see ValidationRecord

    def __init__(
        self,
        tolerance: Positive = 2.0,
        spacing: Positive | Sequence[Positive] = 1.0,
        ignore_background: bool = True,
        ignore_index: int = 255,
        absent: Literal['left_out', 'transunet'] = 'left_out',
        collect_device: Literal['cpu', 'gpu'] = 'cpu',
        prefix: str | None = None,
    ) -> None:
        super().__init__(collect_device, prefix)
        with needed_by('SurfaceMetric'):
            # Imported here, so that a missing scipy is an error before the run.
            import scipy.ndimage  # noqa: F401
        self.tolerance, self.spacing, self.absent = tolerance, spacing, absent
        self.first_class, self.ignore_index = (1 if ignore_background else 0), ignore_index

    def process(self, data_batch: Any, data_samples: Sequence[Mapping[str, Any]]) -> None:
        """Append the scores of an image (a list), or the class maps of a slice (a tuple).

        Slices are scored in :meth:`compute_metrics`, where all of their volume are known.
        """
        for sample in data_samples:
            predicted, true = (
                sample[name]['data'].squeeze(0).cpu().numpy()
                for name in ('pred_sem_seg', 'gt_sem_seg')
            )
            known = true != self.ignore_index
            # Ignored pixels become class 0 in both maps. With `ignore_background=False` they
            # count there, as agreement.
            maps = np.stack([np.where(known, labels, 0) for labels in (predicted, true)])
            case = sample.get('case')
            self.results.append(
                self._scores(*maps)
                if case is None
                else (case, sample.get('slice'), sample['img_path'], maps.astype(np.uint16))
            )

    def compute_metrics(self, results: list) -> dict[str, float]:
        """The three means, and ``Dice.NAME`` of each class."""
        volumes = defaultdict(list)
        scores = [result for result in results if isinstance(result, list)]  # images are scored
        for case, number, path, maps in (result for result in results if isinstance(result, tuple)):
            volumes[case].append((number, path, maps))
        for case, slices in volumes.items():
            if len(sizes := {maps.shape[1:] for *_, maps in slices}) > 1:
                raise ConfigError(
                    f'SurfaceMetric: the slices of case {case!r} have the sizes {sorted(sizes)}, '
                    'and those of a volume have one; correct the data, or leave case out of '
                    'meta_keys.'
                )
            slices.sort(key=_slice_order)
            predicted, true = np.stack([maps for *_, maps in slices], axis=1)
            scores.append(self._scores(predicted, true))
        table = np.array(scores, dtype=float)  # (cases, classes, scores)
        classes = np.apply_along_axis(_mean, 0, table)  # (classes, scores)
        means = [_mean(column) for column in classes.T]
        names = self.dataset_meta['classes'][self.first_class :]
        return dict(mDice=100 * means[0], mHD95=means[1], mBF1=100 * means[2]) | {
            f'Dice.{name}': 100 * float(dice)
            for name, dice in zip(names, classes[:, 0], strict=True)
        }

    def _scores(self, predicted: np.ndarray, true: np.ndarray) -> list[SurfaceScores]:
        """The scores of each class in the maps (H, W), or (slices, H, W), of a case."""
        spacing = np.atleast_1d(self.spacing)
        if len(spacing) not in (1, true.ndim):
            raise ConfigError(
                f'SurfaceMetric: spacing={self.spacing} has {len(spacing)} values, but a case has '
                f'{true.ndim} axes; give one number, or one for each axis.'
            )
        spacing = np.broadcast_to(spacing, true.ndim)
        classes = range(self.first_class, len(self.dataset_meta['classes']))
        if not classes:
            raise ConfigError(
                'SurfaceMetric: ignore_background leaves out the only class of the data; set it to '
                'False.'
            )
        return [self._class_scores(predicted == c, true == c, spacing) for c in classes]

    def _class_scores(
        self, predicted: np.ndarray, true: np.ndarray, spacing: np.ndarray
    ) -> SurfaceScores:
        """The scores of a class, from its predicted and its true mask."""
        if not (predicted.any() and true.any()):
            if self.absent == 'transunet':  # also if both lack it: 0, as in the authors' code
                return SurfaceScores(float(predicted.any()), 0.0, float(predicted.any()))
            if predicted.any() or true.any():
                return SurfaceScores(0.0, np.nan, 0.0)
            return SurfaceScores(np.nan, np.nan, np.nan)
        to_true, to_predicted = surface_distances(predicted, true, spacing)
        within = [(distances <= self.tolerance).mean() for distances in (to_true, to_predicted)]
        return SurfaceScores(
            2 * float((predicted & true).sum() / (predicted.sum() + true.sum())),
            float(np.percentile(np.concatenate((to_true, to_predicted)), 95)),
            # The smallest number avoids 0 / 0 if no boundaries agree.
            2 * float(np.prod(within) / max(sum(within), np.finfo(float).tiny)),
        )


def _slice_order(item: tuple[int | None, str, np.ndarray]) -> tuple[int, list[str | int]]:
    """The sort key of a slice (number, path, maps). Without a number, the path decides.

    Numbers in paths count as numbers: ``slice_2`` comes before ``slice_10``.
    """
    number, path, _ = item
    # `split` returns texts and numbers in turn, beginning with a text.
    parts = [int(part) if i % 2 else part for i, part in enumerate(re.split(r'([0-9]+)', path))]
    return (-1 if number is None else number), parts


def _mean(values: np.ndarray) -> float:
    """The mean without NaN; NaN if all values are NaN."""
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else np.nan


def surface_distances(
    first: np.ndarray, second: np.ndarray, spacing: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The distances of each surface's pixels to the other surface, for two non-empty masks.

    Args:
        first, second: the masks, of any number of axes.
        spacing: size of a pixel along each axis.
    """
    from scipy import ndimage

    # Distances are computed within the bounding box of both masks, which is faster.
    box = ndimage.find_objects((first | second).astype(np.uint8))[0]
    surfaces = [mask[box] & ~ndimage.binary_erosion(mask)[box] for mask in (first, second)]
    to_first, to_second = (
        ndimage.distance_transform_edt(~surface, sampling=spacing) for surface in surfaces
    )
    return to_second[surfaces[0]], to_first[surfaces[1]]

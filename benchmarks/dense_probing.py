"""Dense probes of frozen features: simple classifiers that find the class of each patch.

A probe is fitted to the patches of labeled images, and its mIoU on held-out images tells how well
the features suit segmentation. ``benchmarks/dense_probe.py`` compares models, image sizes and
depths (numbers of blocks) with them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.files.untrusted_text import markdown_table
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.measure.probing import PROBES
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import find_backbone

with needed_by('python benchmarks dense_probe'):
    from scipy.stats import spearmanr
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

DENSE_PROBES = {
    # The 20 nearest patches vote, by their cosine (arXiv:2306.01667, Section 3).
    'knn': PROBES['knn'],
    # Logistic regression on single patches, as the linear segmentation of arXiv:2304.07193, Section
    # 7.4.
    'linear': lambda: make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000)),
}
NOT_LABELED = 255  # pixels without a class
DRAWN_SHARE = 0.5  # share of the training images that each seed draws


class Labeled(NamedTuple):
    """Images with masks. Those for validation come last.

    Attributes:
        images: files, or pixels (H, W, 3) in BGR.
        masks: (H, W), with the number of a class in each pixel, or 255.
        num_train: number of images for training.
        num_classes: number of classes.
    """

    images: Sequence[str | Path | np.ndarray]
    masks: Sequence[np.ndarray]
    num_train: int
    num_classes: int


class DenseScore(NamedTuple):
    """The mIoU of a probe on the features of a model, in percent.

    Attributes:
        model: the name of the model.
        size: shorter side of the images in pixels.
        depth: number of blocks before the features.
        probe: a key of :data:`DENSE_PROBES`.
        scores: the mIoU for each seed, that is, for each draw of training images.
    """

    model: str
    size: int
    depth: int
    probe: str
    scores: list[float]


@torch.no_grad()
def maps_at(
    backbone: VisionTransformer, images: torch.Tensor, depths: Sequence[int]
) -> Iterator[np.ndarray]:
    """The feature map (h, w, C) of one image after each of these numbers of blocks.

    The final norm is applied. Values are in float16, since all maps of a data set are kept.
    """
    x, grid, _, rotations = backbone.begin(images)
    for begin, end in pairwise((0, *depths)):
        x = backbone.blocks.run_blocks(x, grid, begin, end, position_inputs=rotations)
        patches = backbone.norm(x)[0, -math.prod(grid) :]  # (h*w, C)
        yield patches.unflatten(0, grid).half().numpy(force=True)


def patch_labels(mask: np.ndarray, grid: Sequence[int], num_classes: int) -> np.ndarray:
    """The most frequent class of each patch (h, w), or 255 where most have none."""
    one_hot = F.one_hot(
        torch.from_numpy(np.where(mask == NOT_LABELED, num_classes, mask)).long(), num_classes + 1
    )
    shares = F.interpolate(one_hot.permute(2, 0, 1)[None].float(), tuple(grid), mode='area')[0]
    labels = shares.argmax(0).numpy()
    return np.where(labels == num_classes, NOT_LABELED, labels)


def mean_iou(
    predictions: Iterable[np.ndarray], masks: Iterable[np.ndarray], num_classes: int
) -> float:
    """The mean IoU in percent over the classes that occur in the masks or predictions."""
    confusion = np.zeros((num_classes, num_classes), np.int64)
    for predicted, mask in zip(predictions, masks, strict=True):
        labeled = mask != NOT_LABELED
        pairs = num_classes * mask[labeled].astype(np.int64) + predicted[labeled]
        confusion += np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)
    union = confusion.sum(0) + confusion.sum(1) - confusion.diagonal()
    return 100 * float((confusion.diagonal()[union > 0] / union[union > 0]).mean())


def score(probe: str, maps: Sequence[np.ndarray], data: Labeled, chosen: np.ndarray) -> float:
    """The validation mIoU of a probe that is fitted to the chosen training images.

    Its probabilities are upsampled to the pixels of the mask.

    Args:
        probe: a key of :data:`DENSE_PROBES`.
        maps: the feature map (h, w, C) of each image.
        data: the images with their masks.
        chosen: indices of the training images to use.
    """
    labels = np.concatenate(
        [patch_labels(data.masks[i], maps[i].shape[:2], data.num_classes).ravel() for i in chosen]
    )
    patches = np.concatenate([maps[i].reshape(-1, maps[i].shape[-1]) for i in chosen])
    known = labels != NOT_LABELED
    if len(np.unique(labels[known])) < 2:
        raise ConfigError(
            '--masks: the patches of the training images are all of one class; give more images.'
        )
    model = DENSE_PROBES[probe]().fit(patches[known].astype(np.float32), labels[known])

    def predictions() -> Iterator[np.ndarray]:
        for x, mask in zip(maps[data.num_train :], data.masks[data.num_train :], strict=True):
            shares = model.predict_proba(x.reshape(-1, x.shape[-1]).astype(np.float32))
            shares = torch.from_numpy(shares).float().unflatten(0, x.shape[:2]).permute(2, 0, 1)
            yield model.classes_[
                F.interpolate(shares[None], mask.shape, mode='bilinear')[0].argmax(0).numpy()
            ]

    return mean_iou(predictions(), data.masks[data.num_train :], data.num_classes)


def dense_probe(
    name: str,
    trained: TrainedModel,
    data: Labeled,
    depths: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    size: int | None = None,
    probes: Sequence[str] = tuple(DENSE_PROBES),
    seeds: int = 3,
) -> Iterator[DenseScore]:
    """Score each probe on the features of a model at each depth.

    The features are computed once for all depths, probes and seeds.

    Args:
        name: the model's name in the rows.
        trained: the model.
        data: the images.
        depths: fractions of the blocks.
        size: the shorter side of the images in pixels. Default: the model's.
        probes: keys of :data:`DENSE_PROBES`.
        seeds: how often half of the training images are drawn.

    Raises:
        ConfigError: if the model has no :class:`~vit_plugin.models.VisionTransformer` of ours, or
            if the patches for training have a single class.
    """
    backbone = find_backbone(trained.model, VisionTransformer)[1]
    size = size or min(backbone.img_size)
    blocks = sorted({max(round(depth * len(backbone.blocks)), 1) for depth in depths})
    columns = zip(
        *(maps_at(backbone, trained.prepare(image, size).inputs, blocks) for image in data.images),
        strict=True,
    )
    for depth, maps in zip(blocks, columns, strict=True):
        for probe in probes:
            yield DenseScore(
                name,
                size,
                depth,
                probe,
                [
                    score(
                        probe,
                        maps,
                        data,
                        np.random.default_rng(seed).choice(
                            data.num_train,
                            max(round(DRAWN_SHARE * data.num_train), 1),
                            replace=False,
                        ),
                    )
                    for seed in range(seeds)
                ],
            )


def rank_correlation(rows: Sequence[DenseScore]) -> float:
    """Spearman's rank correlation of the rows' scores, averaged over all pairs of seeds."""
    by_seed = zip(*(row.scores for row in rows), strict=True)
    return mean(float(spearmanr(*pair).statistic) for pair in combinations(by_seed, 2))


def table(rows: Sequence[DenseScore], probe: str) -> str:
    """The rows of a probe in Markdown.

    There is a line for each model and size, the best first, and a column for each depth.
    """
    lines: dict[tuple[str, int], dict[int, float]] = {}
    for row in rows:
        if row.probe == probe:
            lines.setdefault((row.model, row.size), {})[row.depth] = mean(row.scores)
    depths = sorted({depth for scores in lines.values() for depth in scores})
    table = [['model', 'size', *(f'block {depth}' for depth in depths)]]
    table += [
        [name, str(size), *(f'{scores[depth]:.1f}' if depth in scores else '' for depth in depths)]
        for (name, size), scores in sorted(lines.items(), key=lambda line: -max(line[1].values()))
    ]
    return markdown_table(table, numbers=len(depths))

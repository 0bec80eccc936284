"""Dense probes (benchmarks/dense_probing.py): labels of patches, scores and tables."""

import numpy as np
import pytest
import torch
from mmengine.config import Config
from rejection import rejects

from benchmarks.dense_probing import (
    DenseScore,
    Labeled,
    dense_probe,
    maps_at,
    mean_iou,
    patch_labels,
    rank_correlation,
    table,
)
from vit_plugin.inference.image_transforms import TimmTransform
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models import VisionTransformer
from vit_plugin.models.classifier import create_model

GRID = (4, 6)


def trained(tiny: dict, **backbone) -> TrainedModel:
    """A tiny model with random weights, and its preprocessing."""
    from mmengine.model import ImgDataPreprocessor

    torch.manual_seed(0)
    model = create_model(tiny['arch'], img_size=32, num_classes=0, **backbone)
    model.data_preprocessor = ImgDataPreprocessor([127.0] * 3, [60.0] * 3)
    pixels = TimmTransform(
        dict(
            mean=(0.5,) * 3,
            std=(0.5,) * 3,
            input_size=(3, 32, 32),
            interpolation='bicubic',
            crop_pct=1.0,
        )
    )
    return TrainedModel(model, Config(dict(default_scope='mmpretrain')), {}, pixels)


def halves(number: int = 12, size: tuple[int, int] = (32, 48), num_train: int = 8) -> Labeled:
    """Images with a dark left and a bright right part. The top row of the masks is unlabeled."""
    rng, images, masks = np.random.default_rng(0), [], []
    for _ in range(number):
        mask = np.zeros(size, np.uint8)
        mask[:, int(rng.integers(8, size[1] - 8)) :] = 1
        images.append((mask[..., None] * 150 + rng.integers(0, 60, (*size, 3))).astype(np.uint8))
        mask[0] = 255
        masks.append(mask)
    return Labeled(images, masks, num_train, 2)


def test_patches_have_their_most_frequent_class():
    mask = np.zeros((32, 48), np.uint8)
    mask[:, 20:] = 2  # half of the third column of patches
    mask[:5, :8] = 255
    labels = patch_labels(mask, GRID, 3)
    assert labels.shape == GRID
    assert labels[0, 0] == 255
    assert (labels[1:, :2] == 0).all()
    assert (labels[:, 3:] == 2).all()


def test_mean_iou_ignores_absent_classes_and_unlabeled_pixels():
    mask = np.array([[0, 0, 1, 255]])
    prediction = np.array([[0, 1, 1, 1]])
    # Classes that do not occur are left out of the mean.
    assert mean_iou([prediction], [mask], 5) == pytest.approx(100 * (1 / 2 + 1 / 2) / 2)


def test_the_last_feature_map_is_the_backbones_output(tiny):
    model = VisionTransformer(**tiny, out_type='featmap').eval()
    images = torch.randn(1, 3, 32, 48)
    first, last = maps_at(model, images, (1, 2))
    np.testing.assert_allclose(
        last, model(images)[0][0].permute(1, 2, 0).detach().half(), atol=2e-3
    )
    assert first.shape == last.shape == (*GRID, 32)
    assert np.abs(first - last).max() > 0.01


@pytest.mark.parametrize('out_type', ['cls_token', 'avg_featmap'])
def test_probes_separate_bright_and_dark_parts(tiny, out_type):
    rows = list(
        dense_probe('tiny', trained(tiny, out_type=out_type), halves(), (0.5, 1.0), seeds=2)
    )
    assert [(row.depth, row.probe) for row in rows] == [
        (1, 'knn'),
        (1, 'linear'),
        (2, 'knn'),
        (2, 'linear'),
    ]
    assert all(len(row.scores) == 2 and min(row.scores) > 75 for row in rows), rows
    text = table(rows, 'linear')
    assert text.splitlines()[0] == '| model | size | block 1 | block 2 |'
    assert text.splitlines()[2].startswith('| tiny | 32 | ')


def test_probes_do_not_learn_random_labels(tiny):
    data = halves()
    # Random in each pixel, so a patch does not show its label.
    masks = [
        np.random.default_rng(i).integers(0, 2, mask.shape) for i, mask in enumerate(data.masks)
    ]
    rows = list(
        dense_probe(
            'tiny', trained(tiny), data._replace(masks=masks), (1.0,), probes=['linear'], seeds=1
        )
    )
    # Guessing between two balanced classes has an mIoU of a third.
    assert rows[0].scores[0] < 50


def test_labels_of_one_class_raise(tiny):
    data = halves()
    with rejects('all of one class; give more images'):
        list(
            dense_probe(
                'tiny',
                trained(tiny),
                data._replace(masks=[np.zeros_like(mask) for mask in data.masks]),
            )
        )


def test_rank_correlation_is_the_mean_over_pairs_of_draws():
    rows = [
        DenseScore('x', 32, 1, 'knn', scores)
        for scores in ([1.0, 2.0, 30.0], [2.0, 3.0, 20.0], [3.0, 4.0, 10.0])
    ]
    # The mean over pairs of draws: the third draw has the opposite order of the others.
    assert rank_correlation(rows) == pytest.approx((1 - 1 - 1) / 3)

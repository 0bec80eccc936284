"""Probes separate classes that are separable, and only those, on features in eval mode."""

import numpy as np
import pytest
import torch
from rejection import rejects
from torch import nn

from vit_plugin.config import read_config
from vit_plugin.measure.probing import (
    PROBES,
    compute_features,
    draw_shots,
    prepare,
    probe,
    vote,
)


def samples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of three classes, along three axes with noise, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    return np.eye(3, 8)[labels] + rng.normal(size=(count, 8), scale=0.1), labels


@pytest.mark.parametrize('name', PROBES)
def test_probes_separate_distant_classes(name):
    score = probe(samples(90, 0), samples(30, 1), [name], shots=(4, 8), seeds=2)[name]
    assert score == ({4: [100.0, 100.0], 8: [100.0, 100.0]} if name == 'fewshot' else 100.0)


def test_random_labels_are_not_learned():
    train, val = samples(300, 0), samples(300, 1)
    shuffled = np.random.default_rng(2).permutation(train[1])
    assert probe((train[0], shuffled), val, ['knn'])['knn'] < 60


def test_too_few_training_images_raise():
    with rejects('knn uses the 20 nearest training images, but there are only 12'):
        probe(samples(12, 0), samples(3, 1), ['knn'])
    with rejects('into 3 parts, but every class has fewer than 3 images'):
        probe(samples(6, 0), samples(3, 1), ['linear'])
    features, labels = samples(12, 0)
    with rejects('linear separates classes, but all training images are of one'):
        probe((features, np.zeros_like(labels)), samples(3, 1), ['linear'])


def test_too_few_shots_raise_before_other_probes_are_fitted(monkeypatch):
    monkeypatch.setitem(PROBES, 'linear', lambda: pytest.fail('fitted'))
    with rejects('--shots 11: class 0 has only 10 training images'):
        probe(samples(30, 0), samples(3, 1), ['linear', 'fewshot'], shots=(5, 11))


def test_votes_equal_the_papers_formula():
    cosines = np.array([[0.9, 0.2]])
    np.testing.assert_allclose(vote(1 - cosines), np.exp(cosines / 0.07))


def test_draws_have_the_same_number_of_each_class():
    labels = np.repeat([0, 1, 5], [4, 3, 8])
    first, same, other = (draw_shots(labels, 3, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(np.bincount(labels[first])[[0, 1, 5]], [3, 3, 3])
    np.testing.assert_array_equal(first, same)
    assert len({*first}) == 9
    assert {*first} != {*other}
    with rejects('--shots 4: class 1 has only 3'):
        draw_shots(labels, 4, 0)


class PixelModel(nn.Module):
    """Returns the mean of the pixels as features, or all pixels as tokens."""

    def __init__(self, tokens: bool = False) -> None:
        super().__init__()
        self.tokens, self.dropout = tokens, nn.Dropout(0.5)

    def data_preprocessor(self, batch: dict, training: bool) -> dict:
        assert not training
        return batch

    def extract_feat(self, inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.dropout(inputs.flatten(2))
        return (x if self.tokens else x.mean(-1),)


@pytest.mark.filterwarnings('ignore')
def test_features_are_computed_in_eval_mode():
    from mmpretrain.structures import DataSample

    batches = [
        dict(
            inputs=torch.randn(2, 3, 4, 4),
            data_samples=[DataSample().set_gt_label(i) for i in (1, 0)],
        )
        for _ in range(2)
    ]
    features, labels = compute_features(PixelModel().train(), batches)
    expected = torch.cat([batch['inputs'] for batch in batches]).mean((2, 3))
    np.testing.assert_allclose(features, expected.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(labels, [1, 0, 1, 0])
    with rejects('pool them with the neck'):
        compute_features(PixelModel(tokens=True), batches)
    batches[0]['data_samples'][0] = DataSample().set_gt_label([0, 1])
    with rejects('not have one label'):
        compute_features(PixelModel(), batches)


def test_training_images_get_the_validation_pipeline():
    cfg = read_config('configs/vit/vit-small-p16_8xb128-300e_in1k.py')
    prepare(cfg)
    assert cfg.train_dataloader.dataset.pipeline == cfg.val_dataloader.dataset.pipeline
    assert cfg.train_dataloader.sampler == dict(type='DefaultSampler', shuffle=False)
    del cfg.val_dataloader['batch_size']  # torch has a default
    prepare(cfg)
    assert cfg.train_dataloader.batch_size == 1
    assert cfg.train_dataloader.dataset.split == 'train'
    part = read_config(
        'configs/self_supervised/hybrid-vit-d2-w192-wc3_1xb64-100e_cifar10-folder-1pct.py'
    )
    prepare(part)
    assert part.train_dataloader.dataset.dataset.pipeline == part.val_dataloader.dataset.pipeline
    part.train_dataloader.dataset = dict(
        type='RepeatDataset', times=2, dataset=part.val_dataloader.dataset
    )
    with rejects('give plain data sets, or parts of them'):
        prepare(part)
    with rejects('Only a config of MMPretrain'):
        prepare(read_config('configs/vit/vit-base-p16_32xb128-90e_in21k.py'))

"""Stratified subsets have the same share of every class."""

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS
from rejection import rejects

from vit_plugin.data import stratified_subset

DIGITS = dict(type='vit_plugin.Digits')


def labels(dataset: BaseDataset) -> np.ndarray:
    return np.array([dataset.get_data_info(i)['gt_label'] for i in range(len(dataset))])


def test_each_class_has_the_same_fraction():
    whole = labels(DATASETS.build(DIGITS))
    part = DATASETS.build(dict(type='vit_plugin.stratified_subset', fraction=0.1, dataset=DIGITS))
    assert type(part).__name__ == 'Digits'
    assert np.bincount(labels(part)).tolist() == [
        round(number * 0.1) for number in np.bincount(whole)
    ]
    assert part.metainfo['classes'] == tuple('0123456789')


def test_subsets_depend_on_the_seed_and_are_nested():
    def images(**options) -> set[bytes]:
        part = stratified_subset(DIGITS, **options)
        return {part.get_data_info(i)['img'].tobytes() for i in range(len(part))}

    assert images(fraction=0.1) == images(fraction=0.1, seed=0) != images(fraction=0.1, seed=1)
    assert images(fraction=0.01) < images(fraction=0.1)
    assert len(images(fraction=1e-6)) == 10  # one of each class


def test_rest_is_the_complement():
    images = []
    for rest in (False, True):
        part = stratified_subset(DIGITS, fraction=0.1, rest=rest)
        images += [part.get_data_info(i)['img'].tobytes() for i in range(len(part))]
    whole = DATASETS.build(DIGITS)
    assert sorted(images) == sorted(
        whole.get_data_info(i)['img'].tobytes() for i in range(len(whole))
    )


def test_rest_of_all_images_raises():
    with rejects('fraction=1 takes all images, so rest=True leaves none'):
        stratified_subset(DIGITS, fraction=1, rest=True)


def test_invalid_arguments_raise():
    for fraction in (0, 1.5, '1%', True, float('nan')):
        with rejects('must be '):
            stratified_subset(DIGITS, fraction=fraction)
    for seed in (-1, 'x', None, True):
        with rejects('seed=.* must be '):
            stratified_subset(DIGITS, fraction=0.1, seed=seed)
    with rejects('RepeatDataset does not give one label for each image'):
        stratified_subset(dict(type='RepeatDataset', times=2, dataset=DIGITS), fraction=0.1)


def test_data_without_images_raise():
    empty = BaseDataset(lazy_init=True)
    empty.data_list, empty.serialize_data, empty._fully_initialized = [], False, True
    with rejects('^stratified_subset: the data set has no images'):
        stratified_subset(dict(type=lambda: empty), fraction=0.5)

"""Subsets of a data set with the same share of every class."""

from typing import Annotated, Any

import numpy as np
from mmengine.dataset import BaseDataset
from mmengine.registry import DATASETS as ALL_DATASETS
from pydantic import Field

from vit_plugin.arguments import checked
from vit_plugin.arguments.fields import Seed
from vit_plugin.errors import ConfigError
from vit_plugin.registry import DATASETS

KeptFraction = Annotated[float, Field(gt=0, le=1)]


@DATASETS.register_module()
@checked
def stratified_subset(
    dataset: dict, fraction: KeptFraction, seed: Seed = 0, rest: bool = False
) -> BaseDataset:
    """Build a data set and keep a subset, such as 1 % of the labels for semi-supervised learning.

    In a config this is ``dataset=dict(type='vit_plugin.stratified_subset', fraction=0.01,
    dataset=dict(...))``.

    Args:
        dataset: the config of a data set with one label for each image.
        fraction: the share of each class to keep, above 0 and at most 1. At least one image of each
            class remains.
        seed: seed of the random choice. With the same seed, a larger fraction has all images of a
            smaller one.
        rest: keep the other images instead, to train on these and validate on the subset.

    Returns:
        The data set itself, of its own class, with fewer images in the same order.

    Raises:
        ConfigError: if the fraction or the seed is out of range, if no images remain, or if the
            images have no labels.
    """
    complete = ALL_DATASETS.build(dataset)
    labels = dataset_labels(complete)
    if not len(labels):
        raise ConfigError(
            'stratified_subset: the data set has no images to choose from; correct its data_root, '
            'ann_file or indices.'
        )
    rng = np.random.default_rng(seed)
    kept = []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        kept.append(members[: max(round(len(members) * fraction), 1)])
    indices = np.sort(np.concatenate(kept))
    if rest:
        indices = np.setdiff1d(np.arange(len(labels)), indices)
        if not len(indices):
            raise ConfigError(
                f'stratified_subset: fraction={fraction} takes all images, so rest=True '
                'leaves none; give a smaller fraction, or add images.'
            )
    return complete.get_subset(indices.tolist())


def dataset_labels(dataset: Any) -> np.ndarray:
    """The label of each image of a data set.

    Raises:
        ConfigError: if there is not one label for each image.
    """
    if isinstance(dataset, BaseDataset):
        labels = [dataset.get_data_info(i).get('gt_label') for i in range(len(dataset))]
        if all(isinstance(label, (int, np.integer)) for label in labels):
            return np.array(labels)
    raise ConfigError(
        f'stratified_subset: {type(dataset).__name__} does not give one label for each image, '
        'which a stratified choice needs; take a classification data set, such as CustomDataset.'
    )

"""Probes of frozen features: nearest neighbors, a linear classifier, few images per class.

A probe is a classifier of scikit-learn that is fitted to the features of the training images, and
scored on those of the validation images.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import DATASETS
from torch import nn

from vit_plugin.config import with_pipeline
from vit_plugin.data.subset import stratified_subset
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.inference.trained_model import compute_vectors

with needed_by('vit-plugin probe'):
    from sklearn.base import ClassifierMixin
    from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer, StandardScaler

NEIGHBORS, KNN_TEMPERATURE = 20, 0.07  # both from the papers cited below
FOLDS = 3  # parts in the cross-validation of 'linear'

LabeledFeatures = tuple[np.ndarray, np.ndarray]  # features (images, channels) and labels (images, )


def vote(distances: np.ndarray) -> np.ndarray:
    """The votes of neighbors at these cosine distances (arXiv:1805.01978, Section 3.4)."""
    return np.exp((1 - distances) / KNN_TEMPERATURE)


PROBES: dict[str, Callable[[], ClassifierMixin]] = {
    # The 20 nearest images vote, by their cosine (arXiv:2104.14294, Section 4.1).
    'knn': lambda: KNeighborsClassifier(
        NEIGHBORS, weights=vote, metric='cosine', algorithm='brute'
    ),
    # Logistic regression, its L2 penalty chosen by three-fold cross-validation (arXiv:2103.00020,
    # Appendix A.3).
    'linear': lambda: make_pipeline(
        Normalizer(),
        GridSearchCV(LogisticRegression(max_iter=1000), dict(C=np.logspace(-1, 5, 7)), cv=FOLDS),
    ),
    # Least squares to -1 and 1 (arXiv:2010.11929, Section 4.1), its L2 penalty chosen by leaving
    # out each image.
    'fewshot': lambda: make_pipeline(
        StandardScaler(), RidgeClassifierCV(2.0 ** np.arange(-10, 21))
    ),
}


def prepare(cfg: Config) -> None:
    """Set the training loader to yield each image once, in order, with the validation transforms.

    Raises:
        ConfigError: if this is not a classifier with images for training and validation, or if
            their data sets are in a wrapper that may repeat images.
    """
    train_loader, val_loader = cfg.get('train_dataloader'), cfg.get('val_dataloader')
    if cfg.get('default_scope') != 'mmpretrain' or not (train_loader and val_loader):
        raise ConfigError(
            'Only a config of MMPretrain with a train_dataloader and a val_dataloader can be '
            'probed, since the probes need its images; give --config with one that has both, such '
            'as the config of a run on your data.'
        )
    val_pipeline = _without_repetitions(val_loader.dataset).pipeline
    _without_repetitions(train_loader.dataset).pipeline = val_pipeline
    train_loader.update(
        batch_size=val_loader.get('batch_size', 1),  # the default of torch
        sampler=dict(type='DefaultSampler', shuffle=False),
        drop_last=False,
    )
    train_loader.pop('batch_sampler', None)
    # The runner requires these settings next to the data, although nothing is trained.
    cfg.setdefault('train_cfg', dict(by_epoch=True, max_epochs=1))
    cfg.setdefault('optim_wrapper', dict(optimizer=dict(type='SGD', lr=1.0)))


def _without_repetitions(dataset: ConfigDict) -> ConfigDict:
    """The config of the data set itself, which has the pipeline.

    See :func:`~vit_plugin.config.data.with_pipeline`.

    Raises:
        ConfigError: if the data set is in a wrapper other than ``stratified_subset``, which may
            repeat images.
    """
    if 'dataset' in dataset and DATASETS.get(dataset.type) is not stratified_subset:
        raise ConfigError(
            'train_dataloader.dataset and val_dataloader.dataset need a pipeline of their own to '
            'be probed; give plain data sets, or parts of them by vit_plugin.stratified_subset.'
        )
    return with_pipeline(dataset)


@torch.no_grad()
def compute_features(model: nn.Module, loader: Iterable[dict[str, Any]]) -> LabeledFeatures:
    """Features before the head of a classifier, (images, channels), and the labels (images, ).

    Raises:
        ConfigError: if the head gets tokens or maps, or if an image has several labels or none.
    """
    model.eval()
    features, labels = [], []
    for batch in loader:
        prepared = model.data_preprocessor(batch, training=False)
        features.append(compute_vectors(model, prepared['inputs']))
        for sample in prepared['data_samples']:
            if sample.get('gt_label') is None or sample.gt_label.numel() != 1:
                raise ConfigError(
                    f'{sample.get("img_path", "An image")!r} does not have one label, which a '
                    'probe needs.'
                )
            labels.append(int(sample.gt_label))
    return np.concatenate(features), np.asarray(labels)


def draw_shots(labels: np.ndarray, shots: int, seed: int) -> np.ndarray:
    """Draw the positions of ``shots`` images of each class.

    Raises:
        ConfigError: if a class has fewer images.
    """
    rng, positions = np.random.default_rng(seed), []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) < shots:
            raise ConfigError(
                f'--shots {shots}: class {label} has only {len(members)} training images; ask for '
                'fewer.'
            )
        positions.append(rng.choice(members, shots, replace=False))
    return np.concatenate(positions)


def probe(
    train: LabeledFeatures,
    val: LabeledFeatures,
    probes: Sequence[str],
    shots: Sequence[int] = (5,),
    seeds: int = 3,
) -> dict[str, Any]:
    """The accuracies, in per cent, of classifiers on features.

    Args:
        train, val: features and labels from :func:`compute_features`.
        probes: names of ``PROBES``.
        shots: images per class for ``'fewshot'``.
        seeds: number of draws for ``'fewshot'``.

    Returns:
        The accuracy by the name of the probe. For ``'fewshot'``, a dict by the number of images,
        with a list over the draws.

    Raises:
        ConfigError: if there are too few training images for ``'knn'``, for the folds of
            ``'linear'``, or for the shots of a class, or if ``'linear'`` has only one class.
    """
    if 'knn' in probes and len(train[1]) < NEIGHBORS:
        raise ConfigError(
            f'knn uses the {NEIGHBORS} nearest training images, but there are only '
            f'{len(train[1])}: give more, or other --probes.'
        )
    members = np.unique(train[1], return_counts=True)[1]  # images of each class
    if 'linear' in probes and len(members) == 1:
        raise ConfigError(
            'linear separates classes, but all training images are of one: give images of others, '
            'or other --probes.'
        )
    if 'linear' in probes and members.max() < FOLDS:
        raise ConfigError(
            f'linear divides the training images of each class into {FOLDS} parts, but every class '
            f'has fewer than {FOLDS} images: give more, or other --probes.'
        )
    for number in shots if 'fewshot' in probes else ():
        draw_shots(train[1], number, seed=0)  # raises before the other probes have taken minutes

    def accuracy(name: str, positions: np.ndarray | slice) -> float:
        """The accuracy of a probe fitted to the training images at these positions."""
        fitted = PROBES[name]().fit(train[0][positions], train[1][positions])
        return 100 * float(fitted.score(*val))

    accuracies: dict[str, Any] = {
        name: accuracy(name, slice(None)) for name in probes if name != 'fewshot'
    }
    if 'fewshot' in probes:
        accuracies['fewshot'] = {
            number: [
                accuracy('fewshot', draw_shots(train[1], number, seed)) for seed in range(seeds)
            ]
            for number in shots
        }
    return accuracies

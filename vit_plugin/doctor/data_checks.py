"""Check the sections other than the model, the classes, the order of the data and the validation.

Each public function is a check of :data:`.checks.CHECKS`.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from mmengine.registry import DATA_SAMPLERS

from vit_plugin.config.data import LOADER_SECTIONS, missing_files
from vit_plugin.config.sections import CONFIG_SECTIONS, check_sections
from vit_plugin.errors import ConfigError, MissingExtraError, first_line
from vit_plugin.models.classes import check_classes

from .examined import ExaminedConfig, Faults
from .named_weights import iter_sections

LABEL_BATCHES = 4  # number of batches whose labels are read
SAMPLED_LABELS = 1000  # images whose labels are read to compare the frequency of classes
DOMINANT_SHARE = 0.9  # with this share of images in one class, single-class batches are likely


def invalid_sections(examined: ExaminedConfig) -> Faults:
    """Find wrong names, types and ranges in all sections except the model.

    Sections with data that are not on this machine are left out. The description of each fault has
    its cure.
    """
    if examined.is_untrusted:  # classes in a run's files are not looked up
        return
    for name in (*CONFIG_SECTIONS, 'default_hooks'):
        value = examined.cfg.get(name)
        if value is None:
            continue
        if any(any(missing_files(section)) for _, section in iter_sections(value, name)):
            continue
        section = {'default_scope': examined.scope, name: value}
        try:
            check_sections(section, LOADER_SECTIONS)
        except ConfigError as error:
            # The file of a metric may be on another machine.
            if 'there is no file' not in f'{error}':
                yield f'{error}', ''
        except MissingExtraError as error:
            examined.unseen.append(f'{name}: {error}')


def mismatched_classes(examined: ExaminedConfig) -> Faults:
    """Find classes given as one string, that do not fit a head, or that differ between splits.

    Only the first fault is reported, since the others may follow from it.
    """
    classes_of_split: dict[str, Any] = {
        split: examined.metainfo(split).get('classes') for split in ('train', 'val', 'test')
    }
    for split, names in classes_of_split.items():
        if isinstance(names, str):
            yield (
                f'{split}_dataloader: metainfo.classes={names!r} is a string, whose letters are '
                'taken for classes',
                f'write a tuple with a comma: classes=({names!r},)',
            )
            return
    for split, names in classes_of_split.items():
        if examined.model is None or not names:
            continue
        try:
            check_classes(examined.model, dict(classes=list(names)), f'{split}_dataloader')
        except ConfigError as error:
            yield f'{error}', ''
            return
    trained = classes_of_split['train']
    for split in ('val', 'test'):
        names = classes_of_split[split]
        if trained and names and list(trained) != list(names):
            yield (
                f'{split}_dataloader has other classes than train_dataloader: '
                f'{_summarize(names)} in place of {_summarize(trained)}',
                f'give {split}_dataloader.dataset the same metainfo',
            )
            return


def _summarize(names: Sequence[str]) -> str:
    """The number of names, and the first three."""
    return f'{len(names)} ({", ".join(map(str, names[:3]))}{", ..." if len(names) > 3 else ""})'


def single_class_batches(examined: ExaminedConfig) -> Faults:
    """Find batches of a single class in data with several."""
    data = examined.training_data
    loader = examined.cfg.get('train_dataloader') or {}
    size, sampler = loader.get('batch_size') or 1, loader.get('sampler')
    if not hasattr(data, '__len__') or size < 2 or not isinstance(sampler, Mapping):
        return  # there are no data, or a stream of them
    if len(data) < 2 * size:
        return
    try:
        with examined.build_context():
            built = DATA_SAMPLERS.build(dict(sampler), default_args=dict(dataset=data, seed=0))
    except Exception as error:  # noqa: BLE001  of any sampler
        examined.unseen.append(f'the batches: {first_line(error)}')
        return
    indices = list(islice(iter(built), LABEL_BATCHES * size))
    labels = [label for label in (_label(data, i) for i in indices) if label is not None]
    if len(labels) < 2 * size:
        return
    batches = [labels[i : i + size] for i in range(0, len(labels) - size + 1, size)]
    step = max(1, len(data) // SAMPLED_LABELS)
    sampled = (_label(data, i) for i in range(0, len(data), step))
    counts = Counter(label for label in sampled if label is not None)
    is_mixed = len(counts) > 1 and max(counts.values()) < DOMINANT_SHARE * sum(counts.values())
    if is_mixed and all(len(set(batch)) == 1 for batch in batches):
        yield (
            f'train_dataloader.sampler: the first {len(batches)} batches of {size} images have one '
            f'class each, of data with {len(counts)}',
            'set sampler.shuffle=True',
        )


def _label(data: Any, index: int) -> Any:
    """The label of an image. None if it has none or several, or if the data set has no labels."""
    try:
        labels = data.get_cat_ids(int(index))
    except (AttributeError, KeyError, NotImplementedError, TypeError):
        return None
    return labels[0] if isinstance(labels, (list, tuple)) and len(labels) == 1 else None


def mismatched_annotations(examined: ExaminedConfig) -> Faults:
    """Find a metric with another annotation file than the data set of the same split."""
    for split in ('val', 'test'):
        dataset = examined.dataset_config(split)
        file = dataset.get('ann_file')
        evaluator = examined.cfg.get(f'{split}_evaluator') or []
        metrics = [evaluator] if isinstance(evaluator, Mapping) else evaluator
        files = [
            metric['ann_file']
            for metric in metrics
            if isinstance(metric, Mapping) and isinstance(metric.get('ann_file'), str)
        ]
        if not file or not files or '://' in f'{file}{files}':
            continue
        loaded = os.path.normpath(os.path.join(dataset.get('data_root') or '', file))
        if loaded not in map(os.path.normpath, files):
            yield (
                f'{split}_evaluator.ann_file={files[0]!r}, where {split}_dataloader has {loaded!r}',
                f'set {split}_evaluator.ann_file={loaded!r}',
            )

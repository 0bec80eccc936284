"""Checks of data: settings, classes, order and validation."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from mmengine.registry import DATA_SAMPLERS

from vit_plugin.config.data import LOADER_SECTIONS, missing_files
from vit_plugin.config.sections import CONFIG_SECTIONS, check_sections
from vit_plugin.errors import ConfigError, MissingExtraError
from vit_plugin.models.classes import check_classes

from .examined import Examined, Findings
from .named_weights import iter_sections

LABEL_BATCHES = 4  # number of batches whose labels are read
SHARE = 0.9  # with this share of images in one class, single-class batches are likely


def settings(examined: Examined) -> Findings:
    """Check all sections except the model, with one sentence for each fault."""
    if examined.is_data:  # classes in a run's files are not looked up
        return
    for name in (*CONFIG_SECTIONS, 'default_hooks'):
        value = examined.settings.get(name)
        if value is None or any(any(missing_files(one)) for _, one in iter_sections(value, name)):
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


def classes(examined: Examined) -> Findings:
    """Find class names in one string, too many for a head, or different in validation."""
    known: dict[str, Any] = {
        part: examined.metainfo(part).get('classes') for part in ('train', 'val', 'test')
    }
    for part, names in known.items():
        if isinstance(names, str):
            yield (
                f'{part}_dataloader: metainfo.classes={names!r} is a string, whose letters are '
                'taken for classes',
                f'write a tuple with a comma: classes=({names!r},)',
            )
            return
    for part, names in known.items():
        if examined.model is None or not names:
            continue
        try:
            check_classes(examined.model, dict(classes=[*names]), f'{part}_dataloader')
        except ConfigError as error:
            yield f'{error}', ''
            return
    for part in ('val', 'test'):
        if known['train'] and known[part] and [*known['train']] != [*known[part]]:
            yield (
                f'{part}_dataloader has other classes than train_dataloader: '
                f'{_shown(known[part])} in place of {_shown(known["train"])}',
                f'give {part}_dataloader.dataset the same metainfo',
            )
            return


def _shown(names: Sequence[str]) -> str:
    return f'{len(names)} ({", ".join(map(str, names[:3]))}{", ..." if len(names) > 3 else ""})'


def one_class(examined: Examined) -> Findings:
    """Find batches of a single class in data with several."""
    data = examined.training_data
    loader = examined.settings.get('train_dataloader') or {}
    size, sampler = loader.get('batch_size') or 1, loader.get('sampler')
    if data is None or size < 2 or not isinstance(sampler, Mapping) or len(data) < 2 * size:
        return
    with examined.building():
        built = DATA_SAMPLERS.build(dict(sampler), default_args=dict(dataset=data, seed=0))
    indices = [*islice(iter(built), LABEL_BATCHES * size)]
    labels = [label for label in (_label(data, i) for i in indices) if label is not None]
    if len(labels) < 2 * size:
        return
    batches = [labels[i : i + size] for i in range(0, len(labels) - size + 1, size)]
    every = Counter(_label(data, i) for i in range(0, len(data), max(1, len(data) // 1000)))
    many = len(every) > 1 and max(every.values()) < SHARE * sum(every.values())
    if many and all(len({*batch}) == 1 for batch in batches):
        yield (
            f'train_dataloader.sampler: the first {len(batches)} batches of {size} images have one '
            f'class each, of data with {len(every)}',
            'set sampler.shuffle=True',
        )


def _label(data: Any, index: int) -> Any:
    """The label of an image, or None if it has none or several."""
    try:
        labels = data.get_cat_ids(int(index))
    except (AttributeError, KeyError, NotImplementedError, TypeError):
        return None
    return labels[0] if isinstance(labels, (list, tuple)) and len(labels) == 1 else None


def validation(examined: Examined) -> Findings:
    """Find a metric with other annotations than the predicted images."""
    for part in ('val', 'test'):
        dataset = examined.dataset_config(part)
        file = dataset.get('ann_file')
        given = examined.settings.get(f'{part}_evaluator') or []
        metrics = [given] if isinstance(given, Mapping) else given
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
                f'{part}_evaluator.ann_file={files[0]!r}, where {part}_dataloader has {loaded!r}',
                f'set {part}_evaluator.ann_file={loaded!r}',
            )

"""Pictures of a data set before the first step: its labels, and images as the network sees them."""

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from anyfolder.sampling import evenly_spaced
from anyfolder.wording import counted
from vit_plugin.data.dataset_facts import classes_of
from vit_plugin.data.seeded import seed_host, seeds
from vit_plugin.inference.prepared_image import rgb_pixels
from vit_plugin.task import task_declarations

from .annotations import true_annotations
from .data_labels import DataLabels, readable
from .figure_files import save_figure
from .image_grid import Panel, draw_grid
from .label_charts import draw_labels

SHOWN_SAMPLES = 16
Collate = Callable[[Sequence[Any]], Any]


def draw_data(
    dataset: Any,
    folder: str | Path,
    val_dataset: Any = None,
    preprocessor: nn.Module | None = None,
    collate: Collate = pseudo_collate,
    seed: int = 0,
) -> list[Path]:
    """Write ``labels.png`` and ``train_batch.png``, images as the network sees them.

    The data sets, the preprocessor and all random generators are left unchanged. At most 10,000
    samples without pixels (``get_data_info``), 200 masks and 16 images are read, evenly over a data
    set.

    Args:
        dataset: a built data set of MMPretrain, MMDetection or MMSegmentation with its pipeline, to
            train on.
        folder: where the pictures are written.
        val_dataset: a built data set to validate on, whose classes are counted too.
        preprocessor: the model's, which may mix and pad images. If it communicates, all processes
            must call this.
        collate: makes a batch of samples, as the data loader's ``collate_fn`` does.
        seed: seed of the augmentation.

    Returns:
        The paths of what was written. A data set without labels, or without a length, has no
        picture.
    """
    written = []
    for name, figure in data_figures(dataset, val_dataset, preprocessor, collate, seed):
        written.append(Path(folder, f'{name}.png'))
        save_figure(figure, written[-1])
    return written


def data_figures(
    dataset: Any,
    val_dataset: Any = None,
    preprocessor: nn.Module | None = None,
    collate: Collate = pseudo_collate,
    seed: int = 0,
) -> Iterator[tuple[str, Figure]]:
    """The figures that :func:`draw_data` writes, with their names."""
    classes = classes_of(dataset)
    if isinstance(dataset, IterableDataset) or not len(dataset):
        return
    declared_labels = declared_labels_of(dataset)
    if not classes and (declared_labels is None or declared_labels.count):
        return  # only labels without classes, such as depth maps, need no names
    splits = {'train': copy_dataset(dataset)}
    if val_dataset is not None:
        splits['validation'] = copy_dataset(val_dataset)
    with preserved_rng(seed):
        chart = _label_chart(splits, classes, declared_labels)
    if chart is not None:
        yield 'labels', chart
    with preserved_rng(seed):
        batch = _batch_figure(splits['train'], classes, declared_labels, preprocessor, collate)
    if batch is not None:
        yield 'train_batch', batch


def find_task_labels() -> Iterator[DataLabels]:
    """The labels that the tasks of :mod:`vit_plugin.tasks` declare."""
    return map(resolve_name, dict.fromkeys(task_declarations('labels').values()))


def declared_labels_of(dataset: Any) -> DataLabels | None:
    """The declared labels of a data set, by the fields of its first sample; None if it has none."""
    first = dataset.get_data_info(0) if hasattr(dataset, 'get_data_info') else {}
    return next((labels for labels in find_task_labels() if labels.field in first), None)


@contextmanager
def preserved_rng(seed: int | None = None) -> Iterator[None]:
    """Within this context, keep the state of Python's, NumPy's and torch's random generators.

    Args:
        seed: seed of the generators within the context, if given.
    """
    python, numpy = random.getstate(), np.random.get_state()
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    try:
        with torch.random.fork_rng(devices):
            if seed is not None:
                seed_host(seeds(seed, purpose=0, number=0))
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def copy_dataset(dataset: Any) -> Any:
    """Copy a data set, with a shared list of samples but its own transforms.

    Transforms may cache images.
    """
    # A SeededDataset sets attributes of the data set in it, so its copy would change the original.
    dataset = copy.copy(getattr(dataset, 'unseeded', dataset))
    if getattr(dataset, 'pipeline', None) is not None:
        dataset.pipeline = copy.deepcopy(dataset.pipeline)
    if hasattr(dataset, 'datasets'):
        dataset.datasets = [copy_dataset(part) for part in dataset.datasets]
    elif hasattr(dataset, 'dataset'):
        dataset.dataset = copy_dataset(dataset.dataset)
    return dataset


def file_of(sample: Any) -> str:
    """The file name of a data sample, or an empty string."""
    return Path(sample.get('img_path') or '').name


def _label_chart(
    splits: Mapping[str, Any], classes: Sequence[str], declared_labels: DataLabels | None
) -> Figure | None:
    """The chart of the labels. None if they cannot be counted."""
    if not all(hasattr(dataset, 'get_data_info') for dataset in splits.values()):
        return None
    if declared_labels is None or declared_labels.count is None:
        return None
    unit, counts, notes, first_boxes = declared_labels.unit, {}, [], None
    for split, dataset in splits.items():
        indices = evenly_spaced(len(dataset), declared_labels.limit)
        labels, boxes = declared_labels.count(dataset, indices, len(classes))
        counts[split] = labels
        if first_boxes is None:
            first_boxes = boxes
        note = f'{len(dataset):,} images'
        if len(indices) < len(dataset):
            note = f'{len(indices):,} of {note}'
        if unit != 'images':
            note = f'{int(labels.sum()):,} {unit} in {note}'
        notes.append(f'{split}: {note}')
    return draw_labels(counts, classes, unit, title='; '.join(notes), boxes=first_boxes)


def _batch_figure(
    dataset: Any,
    classes: Sequence[str],
    declared_labels: DataLabels | None,
    preprocessor: nn.Module | None,
    collate: Collate,
) -> Figure | None:
    """Images after augmentation, with their ground truth. None if there are none to draw."""
    items = list(readable(dataset, evenly_spaced(len(dataset), SHOWN_SAMPLES), dataset.__getitem__))
    items = [
        item
        for item in items
        if isinstance(item, Mapping) and isinstance(item.get('inputs'), Tensor)
    ]
    if not items:
        return None
    batch = collate(items)
    if preprocessor is not None:
        preprocessor = copy.deepcopy(preprocessor)
        batch = preprocessor(batch, training=True)
    samples = batch.get('data_samples')
    # Self-supervised learning has several views of an image.
    if samples is None or len(batch['inputs']) != len(samples):
        return None
    panels = []
    for inputs, sample in zip(batch['inputs'], samples, strict=True):
        image = rgb_pixels(inputs, preprocessor)
        annotations = true_annotations(sample, image.shape[:2], classes)
        number = 0 if annotations.instances is None else len(annotations.instances.objects)
        count = counted(number, 'object') if number else ''
        title = annotations.caption or count
        panels.append(Panel(image, annotations, title, file=file_of(sample)))
        if declared_labels is not None:
            panels += declared_labels.panels(sample)
    return draw_grid(panels, classes, heading='images to train on, after augmentation')

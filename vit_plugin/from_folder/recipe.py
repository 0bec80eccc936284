"""A config that a person reads and changes: its sections, and its text."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .multispectral import said_of
from .readers.listing import Listing
from .readers.splits import Split
from .request import Request, counted

HELD_OUT = 'held out, a tenth of all'
# Before these sections stands a comment.
COMMENTS = {
    'work_dir': 'Logs, checkpoints and results: the folder of this file.',
    'load_from': 'The weights to start from.',
    'train_pipeline': 'What is done to an image in training, and in a test.',
    'train_dataloader': 'The images, by a process for each core, up to 4 (`num_workers`).',
    'optim_wrapper': 'The schedule of `schedule_length` epochs is scaled to `max_epochs`.',
}


@dataclass(frozen=True)
class Reference:
    """The name of an earlier section, which stands for its value."""

    section: str

    def __str__(self) -> str:
        return self.section


@dataclass
class Recipe:
    """A config that is not yet written."""

    text: str  # what it does, in sentences
    sections: dict[str, Any]  # the settings in order, with a Reference where one is used again
    bases: Sequence[str]  # files of _base_
    listing: Listing  # the data
    files: Mapping[str, str]  # the lists of images, for the work directory: name -> content


def contents(listing: Listing) -> str:
    """The number of classes of some data, or where there are none, of images."""
    if listing.classes:
        return counted(len(listing.classes), 'class')
    return counted(len(listing.train), 'image')


def summary(
    request: Request,
    listing: Listing,
    held_out: str,
    epochs: int,
    batch_size: int,
    size: tuple[int, int],
) -> str:
    """The images and the length of a training, in sentences."""
    train, val = len(listing.train), len(listing.val)
    purpose = held_out if listing.held_out else 'to validate'
    test = (
        f', {counted(len(listing.parts["test"]), "image")} for vit-plugin test'
        if listing.parts['test']
        else ''
    )
    start = 'From scratch' if request.from_scratch else 'Fine-tuned'
    return (
        f'{counted(train, "image")} to train on, {counted(val, "image")} {purpose}{test}. '
        f'{start}, {counted(epochs, "epoch")} of '
        f'{counted(math.ceil(train / batch_size), "step")}, images within {size[0]} x {size[1]} '
        f'pixels.{said_of(listing.bands)}'
    )


def data_sections(
    request: Request,
    listing: Listing,
    batch_size: int,
    train_pipeline: list,
    test_pipeline: list,
    dataset: Callable[[Split], dict],
    metric: Callable[[Split], dict],
) -> dict[str, Any]:
    """Pipelines, loaders and metrics. A test reads its own part of the data, or that of validation.

    Args:
        dataset, metric: for a part of the data, its data set without pipeline and classes, and its
            metric.
    """

    def loader(split: Split, pipeline: str, **sampler: Any) -> dict[str, Any]:
        part = dict(
            dataset(split),
            metainfo=dict(classes=Reference('classes')),
            pipeline=Reference(pipeline),
        )
        if split != 'train':
            part = dict(part, test_mode=True)
        elif request.balance:  # classes with less than the mean share are repeated
            part = dict(
                type='ClassBalancedDataset', oversample_thr=1 / len(listing.classes), dataset=part
            )
        return dict(batch_size=batch_size, sampler=sampler, dataset=part)

    sections = dict(
        train_pipeline=train_pipeline,
        test_pipeline=test_pipeline,
        train_dataloader=loader(
            'train', 'train_pipeline', type='vit_plugin.DefaultSampler', shuffle=True
        ),
        val_dataloader=loader('val', 'test_pipeline', type='DefaultSampler', shuffle=False),
        val_evaluator=metric('val'),
        test_dataloader=Reference('val_dataloader'),
        test_evaluator=Reference('val_evaluator'),
    )
    if listing.parts['test']:
        sections['test_dataloader'] = loader(
            'test', 'test_pipeline', type='DefaultSampler', shuffle=False
        )
        sections['test_evaluator'] = metric('test')
    return sections


def text_of(recipe: Recipe, request: Request) -> str:
    """The config file of a recipe.

    Raises:
        ConfigError: for a name with ``{{``, which MMEngine replaces, or one that is not text.
    """
    title = f'{request.title} on {request.data}, {contents(recipe.listing)}.'
    docstring = '\n\n'.join([title, f'    {request.command()}', fill(recipe.text, 110)])
    escaped = docstring.replace('\\', r'\\').replace('"""', r'\"\"\"')
    lines = [f'"""{escaped}\n"""', '', Config(dict(_base_=list(recipe.bases))).pretty_text]
    run = dict(work_dir=request.absolute_work_dir, experiment_name=Path(request.work_dir).name)
    for name, value in {**run, **recipe.sections}.items():
        lines += [f'# {COMMENTS[name]}'] if name in COMMENTS else []
        lines.append(Config({name: value}).pretty_text)
    text = '\n'.join(lines)
    if '{{' in text or any('\ud800' <= letter <= '\udfff' for letter in text):
        raise ConfigError(
            f'--data: a config for {request.data!r} would not be read back the same; give the '
            'folder and its classes names without {{ and of usual characters.'
        )
    return text

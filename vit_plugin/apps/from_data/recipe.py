"""A config that a person reads and changes: its sections, and its text."""

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .request import Request, counted, data_workers

HELD_OUT = 'held out, a tenth of all'
# Before these sections stands a comment.
COMMENTS = {
    'work_dir': 'Logs, checkpoints and results.',
    'load_from': 'The weights to start from.',
    'train_pipeline': 'What is done to an image in training, and in a test.',
    'train_dataloader': 'The images.',
    'optim_wrapper': 'How it learns. The schedule is made for `schedule_length` epochs, and scaled to `max_epochs`.',
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
    files: Mapping[str, str] = field(default_factory=dict)  # further ones for the work directory, name -> content


def summary(request: Request, train: Sized, val: Sized, held_out: str, epochs: int, batch_size: int,
            size: tuple[int, int]) -> str:
    """The images and the length of a training, in sentences."""
    return (f'{counted(len(train), "image")} to train on, {counted(len(val), "image")} {held_out or "to validate"}. '
            f'{"From scratch" if request.from_scratch else "Fine-tuned"}, {counted(epochs, "epoch")} of '
            f'{counted(math.ceil(len(train) / batch_size), "step")}, images within {size[0]} x {size[1]} pixels.')


def data_sections(request: Request, classes: int, batch_size: int, train_pipeline: list, test_pipeline: list,
                  train: dict, val: dict, metric: dict) -> dict[str, Any]:
    """Pipelines, loaders of data sets that have no pipeline and classes yet, and metrics."""
    def loader(dataset: dict, **sampler: Any) -> dict[str, Any]:
        return dict(batch_size=batch_size, num_workers=data_workers(), sampler=sampler, dataset=dataset)

    train, val = (dict(dataset, metainfo=dict(classes=Reference('classes')), pipeline=Reference(pipeline))
                  for dataset, pipeline in ((train, 'train_pipeline'), (val, 'test_pipeline')))
    if request.balance:  # classes with less than the mean share are repeated
        train = dict(type='ClassBalancedDataset', oversample_thr=1 / classes, dataset=train)
    return dict(
        train_pipeline=train_pipeline, test_pipeline=test_pipeline,
        train_dataloader=loader(train, type='vit_plugin.DefaultSampler', shuffle=True),
        val_dataloader=loader(val, type='DefaultSampler', shuffle=False), val_evaluator=metric,
        test_dataloader=Reference('val_dataloader'), test_evaluator=Reference('val_evaluator'))


def text_of(recipe: Recipe, request: Request) -> str:
    """The config file of a recipe.

    Raises:
        ConfigError: for a name with ``{{``, which MMEngine replaces, or one that is no text.
    """
    title = f'{request.title} on {request.data}, {counted(len(recipe.sections["classes"]), "class")}.'
    docstring = '\n\n'.join([title, f'    {request.command()}', fill(recipe.text, 110)])
    escaped = docstring.replace('\\', r'\\').replace('"""', r'\"\"\"')
    lines = [f'"""{escaped}\n"""', '', Config(dict(_base_=list(recipe.bases))).pretty_text]
    run = dict(work_dir=request.work_dir, experiment_name=Path(request.work_dir).name)
    for name, value in {**run, **recipe.sections}.items():
        lines += [f'# {COMMENTS[name]}'] if name in COMMENTS else []
        lines.append(Config({name: value}).pretty_text)
    text = '\n'.join(lines)
    if '{{' in text or any('\ud800' <= letter <= '\udfff' for letter in text):
        raise ConfigError(f'--data: a config for {request.data!r} would not be read back the same; give the folder '
                          'and its classes names without {{ and of usual characters.')
    return text

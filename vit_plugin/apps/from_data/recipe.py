"""A config that a person reads and changes: its sections, and its text."""

from collections.abc import Mapping, Sequence, Sized
from copy import deepcopy
from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .request import Request, counted, data_workers

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
    """A config that is not yet written.

    Attributes:
        text: what it does, in sentences.
        sections: the settings by their names, in order, with a :class:`Reference` where one is used again.
        bases: files of ``_base_``.
        files: the content of further files for the work directory, by their names.
    """
    text: str
    sections: dict[str, Any]
    bases: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)


def split_text(train: Sized, val: Sized, held_out: bool) -> str:
    """How many images there are for what, as the beginning of a recipe's text."""
    return (f'{counted(len(train), "image")} to train on, {counted(len(val), "image")} '
            f'{"held out, a tenth of all" if held_out else "to validate"}.')


def data_sections(request: Request, classes: int, batch_size: int, train_pipeline: list, test_pipeline: list,
                  train: dict, val: dict, metric: dict) -> dict[str, Any]:
    """Pipelines, loaders and metrics.

    Args:
        request: says whether the classes are balanced.
        classes: number of classes.
        batch_size: images of a batch.
        train_pipeline, test_pipeline: steps for an image.
        train, val: data sets, without pipeline and classes.
        metric: of the validation and the test.
    """
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


def text_of(recipe: Recipe, request: Request, options: Mapping[str, Any] | None = None) -> str:
    """The file of a recipe for a request, to which ``--cfg-options`` were applied.

    Raises:
        ConfigError: for a name with ``{{``, which MMEngine replaces, or one that is no text.
    """
    title = f'{request.title} on {request.data}, {counted(len(recipe.sections["classes"]), "class")}.'
    docstring = '\n\n'.join([title, f'    {request.command(options)}', fill(recipe.text, 110)])
    escaped = docstring.replace('\\', r'\\').replace('"""', r'\"\"\"')
    lines = [f'"""{escaped}\n"""', '', Config(dict(_base_=list(recipe.bases))).pretty_text]
    for name, value in recipe.sections.items():
        lines += [f'# {COMMENTS[name]}'] if name in COMMENTS else []
        lines.append(Config({name: value}).pretty_text)
    text = '\n'.join(lines)
    if '{{' in text or any('\ud800' <= letter <= '\udfff' for letter in text):
        raise ConfigError(f'--data: a config for {request.data!r} would not be read back the same; give the folder, '
                          'its classes and --cfg-options names without {{ and of usual characters.')
    return text


def override(sections: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The sections with ``--cfg-options``.

    An option inside of what is written as a :class:`Reference` changes a copy, and not what it stands for. Options of
    sections that are references come last, so that their copies have the others.
    """
    cfg = Config(deepcopy(sections))
    for option in sorted(options, key=lambda option: isinstance(sections.get(option.partition('.')[0]), Reference)):
        part: Any = cfg
        for key in option.split('.'):
            index: Any = int(key) if isinstance(part, list) and key.isdecimal() else key
            try:
                inner = part[index]
            except (KeyError, IndexError, TypeError):
                break  # a new setting
            if isinstance(inner, Reference):
                part[index] = deepcopy(cfg[inner.section])
            part = part[index]
        cfg.merge_from_dict({option: options[option]})
    return cfg.to_dict()

"""Turn a task's recipe into the text of a config that people can read and edit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from mmengine.config import Config

from anyfolder.readers.listing import Listing
from anyfolder.readers.splits import Split
from anyfolder.stated_license import stated_license
from anyfolder.wording import counted
from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import SHIPPED_PREFIX
from vit_plugin.zoo.data_config import known_mean_std

from .choices import DEFAULT_TASK
from .multispectral import adapt_to_bands, band_normalization
from .request import Request
from .schedule import training_sections, validation_interval
from .task_recipe import TaskRecipe

# Comments above these sections of the written config.
COMMENTS = {
    'data_license': 'As the folder of the data states it; checkpoints keep it.',
    'work_dir': 'Logs, checkpoints and results: the folder of this file.',
    'load_from': 'The weights to start from.',
    'load_pipeline': 'Transforms of each image before some of them are mixed.',
    'train_pipeline': 'Transforms of an image in training, and in a test.',
    'train_dataloader': 'The images, loaded by one process per core, up to 4 (`num_workers`).',
    'optim_wrapper': 'The schedule of `schedule_length` epochs is scaled to `max_epochs`.',
}


@dataclass(frozen=True)
class Reference:
    """A reference to an earlier section, by its name."""

    section: str

    def __str__(self) -> str:
        return self.section


@dataclass(frozen=True)
class PlannedConfig:
    """A config to be written, and the files that belong to it."""

    title: str  # the model and the data
    text: str  # a description in sentences
    sections: Mapping[str, Any]  # settings in order, with a Reference where a section is reused
    bases: Sequence[str]  # files of _base_
    files: Mapping[str, str]  # the lists of images, for the work directory: name -> content


def plan_config(task_recipe: TaskRecipe) -> PlannedConfig:
    """Assemble the sections that a task's recipe provides."""
    request, start, listing = task_recipe.request, task_recipe.start, task_recipe.listing
    sections = model_sections(task_recipe) | data_sections(task_recipe)
    val_share = task_recipe.images_per_pass('val') / task_recipe.images_per_pass('train')
    sections |= training_sections(
        task_recipe.schedule,
        task_recipe.epochs,
        task_recipe.batch_size,
        task_recipe.monitor,
        request.patience,
        val_share=val_share,
    )
    sections['default_hooks']['checkpoint'] |= task_recipe.checkpoint_hook
    sections |= task_recipe.additional_sections
    if license := stated_license(request.data):
        sections['data_license'] = license
    if not listing.val:
        del sections['val_cfg'], sections['test_cfg']
    validations = math.ceil(task_recipe.epochs / validation_interval(task_recipe.epochs, val_share))
    sentences = [
        task_recipe.summary(),
        _note_on_assumptions(task_recipe),
        _note_on_patience(request, validations),
    ]
    return PlannedConfig(
        title=f'{start.title} on {request.data}, {describe_contents(listing)}.',
        text=' '.join(filter(None, sentences)),
        sections=sections,
        bases=[
            SHIPPED_PREFIX + base if base.startswith('_base_/') else base
            for base in task_recipe.bases
        ],
        files={
            Path(task_recipe.list_path(split)).name: task_recipe.list_of(split)
            for split, records in listing.parts.items()
            if records
        },
    )


def model_sections(task_recipe: TaskRecipe) -> Section:
    """The weights, the classes, the model and its preprocessing."""
    start, listing = task_recipe.start, task_recipe.listing
    sections: Section = {}
    if task_recipe.loads_model and not start.from_scratch:
        sections['load_from'] = start.weights
    if listing.classes:
        sections['classes'] = list(listing.classes)
    sections['model'] = task_recipe.model()
    if preprocessor := task_recipe.preprocessor():
        sections['data_preprocessor'] = preprocessor
    if listing.bands and not start.continued:
        preprocessor = sections.get('data_preprocessor') or sections['model']['data_preprocessor']
        preprocessor |= band_normalization(start, listing)
        preprocessor |= task_recipe.multispectral_preprocessor or {}
    return sections


def _note_on_assumptions(task_recipe: TaskRecipe) -> str:
    """A sentence about preprocessing that the weights do not state, or ''."""
    request, start = task_recipe.request, task_recipe.start
    known = start.weights is None or start.weights.startswith(('timm://', 'hf://'))
    if known or start.continued or start.wrapped:
        return ''
    needed = []
    states_mean = 'mean' in start.saved_settings or known_mean_std(None, start.opened)
    # Bands are normalized by the values of the images.
    if not (states_mean or task_recipe.listing.bands):
        needed.append('mean and deviation')
    size_of_weights = request.task == DEFAULT_TASK and request.img_size is None
    if size_of_weights and 'img_size' not in start.saved_settings:
        needed.append('size')
    missing = ' and the '.join(needed)
    if not missing:
        return ''
    return f'The weights do not say the {missing} of their images; those of the arch are assumed.'


def _note_on_patience(request: Request, validations: int) -> str:
    """A sentence about a patience that can end nothing, or ''."""
    if (request.patience or 0) < validations:
        return ''
    return (
        f'--patience {request.patience} ends nothing, since there are only '
        f'{counted(validations, "validation")}.'
    )


def describe_contents(listing: Listing) -> str:
    """The number of classes, or of images if there are no classes, as text."""
    if listing.classes:
        return counted(len(listing.classes), 'class')
    return counted(len(listing.train), 'image')


def data_sections(task_recipe: TaskRecipe) -> Section:
    """Pipelines, loaders and metrics.

    A test reads the test split, or else the validation split. Without validation images there is
    only training.
    """
    listing = task_recipe.listing
    train_pipeline, test_pipeline = task_recipe.pipelines()
    for pipeline in filter(None, (train_pipeline, test_pipeline)):  # a pre-training has no test
        if listing.bands:
            pipeline[:] = adapt_to_bands(pipeline, listing.bands)
        if window := task_recipe.probes.window:
            pipeline[0] = dict(type='vit_plugin.LoadImage', window=window)
    sections: Section = {}
    if task_recipe.mixing:
        # The task's train_pipeline ends with the unmixed pipeline; the transforms before it load.
        unmixed = task_recipe.mixing.pipelines[-1]
        sections['load_pipeline'] = train_pipeline[: -len(unmixed)]
        train_pipeline = task_recipe.mixing.pipelines[0]
    sections |= dict(
        train_pipeline=train_pipeline,
        test_pipeline=test_pipeline,
        train_dataloader=_loader(task_recipe, 'train'),
    )
    if not listing.val:
        del sections['test_pipeline']
        return sections
    sections.update(
        val_dataloader=_loader(task_recipe, 'val'),
        val_evaluator=task_recipe.metric('val'),
        test_dataloader=Reference('val_dataloader'),
        test_evaluator=Reference('val_evaluator'),
    )
    if listing.parts['test']:
        sections |= dict(
            test_dataloader=_loader(task_recipe, 'test'), test_evaluator=task_recipe.metric('test')
        )
    return sections


def _loader(task_recipe: TaskRecipe, split: Split) -> Section:
    """The data loader of a split. Classes and pipelines refer to their own sections."""
    training = split == 'train'
    mixed = training and task_recipe.mixing
    dataset = task_recipe.dataset(split)
    if classes := task_recipe.listing.classes:
        dataset['metainfo'] = dict(classes=Reference('classes'))
    if mixed:
        dataset['pipeline'] = Reference('load_pipeline')
    else:
        dataset['pipeline'] = Reference('train_pipeline' if training else 'test_pipeline')
    if not training:
        dataset['test_mode'] = True
    elif task_recipe.request.balance:
        # Repeat factor sampling: images of classes below the mean frequency are repeated.
        dataset = dict(
            type='ClassBalancedDataset', oversample_thr=1 / len(classes), dataset=dataset
        )
    if mixed:
        pipeline = Reference('train_pipeline')
        dataset = dict(type='MultiImageMixDataset', dataset=dataset, pipeline=pipeline)
    sampler = dict(
        type='vit_plugin.DefaultSampler' if training else 'DefaultSampler', shuffle=training
    )
    options = task_recipe.loader if training else {}
    return dict(batch_size=task_recipe.batch_size, **options, sampler=sampler, dataset=dataset)


def config_text(config: PlannedConfig, request: Request) -> str:
    """The content of the config file, with the equivalent command line in its docstring.

    Raises:
        ConfigError: for a name with ``{{``, which MMEngine replaces, or one that is not text.
    """
    docstring = '\n\n'.join([config.title, f'    {request.command()}', fill(config.text, 110)])
    escaped = docstring.replace('\\', r'\\').replace('"""', r'\"\"\"')
    lines = [f'"""{escaped}\n"""', '', Config(dict(_base_=list(config.bases))).pretty_text]
    run = dict(work_dir=request.absolute_work_dir, experiment_name=Path(request.work_dir).name)
    for name, value in {**run, **config.sections}.items():
        lines += [f'# {COMMENTS[name]}'] if name in COMMENTS else []
        lines.append(Config({name: value}).pretty_text)
    text = '\n'.join(lines)
    if '{{' in text or any('\ud800' <= letter <= '\udfff' for letter in text):
        raise ConfigError(
            f'--data: a config for {request.data!r} would not be read back the same; give the '
            'folder and its classes names without {{ and of usual characters.'
        )
    return text

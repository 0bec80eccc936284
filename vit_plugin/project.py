"""What a project declares: a paper, or a foreign library, is a folder in ``vit_plugin/projects``.

The ``__init__.py`` of a folder says what the project adds, as ``PROJECT``. The rest of the package
reads these tables and names no project, so a folder can be left out. Declarations import nothing:
modules are named as ``'module'`` and objects as ``'module:name'``, which are imported when they are
used.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Project:
    """What a project adds to the package.

    Attributes:
        family: the folder of what the project shares with others, which it may import.
        registered: for each registry of :mod:`vit_plugin.registry`, the module of each class.
        unavailable: names of models that people may look for, and a sentence why there is none.
        archs: variants of the encoder by their names, each as the ``'module:name'`` of an
            :class:`~vit_plugin.arch.Arch`.
        formats: weight formats, as ``'module:name'`` by their names.
        published: models that others publish, as the ``'module:name'`` of a function: a
            :class:`~vit_plugin.weights.published.Published` -> the config of the same model here
            and the names of its classes, or None if it is another model. Third, its weights by our
            names, where no format has them.
        offered: names of published models, each with its license, the side of its images in
            pixels, and the address of its weights.
        models: the ``'module:name'`` of a :class:`~vit_plugin.config.task_model.TaskModel`, by its
            task and its name in ``--model``.
        precedence: between projects with formats that explain a checkpoint equally well, the one
            with the larger number wins.
        names: our names of parameters outside the encoder, as patterns. If one has a text, it
            counts only for a checkpoint with that text in a key.
        hints: patterns of parameters, and in words the arguments of the model that has them.
        continuations: methods of ``pretrain --method`` that continue a model, each with its file in
            ``configs/_base_/selfsup``, which has the neck, head and losses.
        pretrains: backbones that pre-train a :class:`~vit_plugin.models.VisionTransformer`, and
            their arguments that it does not take.
        wraps: backbones that hold another library's module, each with the ``'module:name'`` of a
            function: the name of a model and the content of a ``config.json`` -> its arguments, or
            none for another model.
        deployed: adapters of graphs as ``'module:name'``, by the attribute of the model and the
            name of its class.
        folders: detectors as folders of transformers, as the ``'module:name'`` of a function: a
            model, its section of a config, and what makes the config of an encoder -> the content
            of ``config.json`` and the name of a format, or None for another model.
        stand_ins: the classes in place of MMPretrain's and mmcv's where these are not installed,
            as in ``registered``; under ``''`` those that no config names.
    """

    registered: Mapping[str, Mapping[str, str]]
    family: str = ''
    unavailable: Mapping[str, str] = field(default_factory=dict)
    archs: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, str] = field(default_factory=dict)
    offered: Mapping[str, tuple[str, int, str]] = field(default_factory=dict)
    models: Mapping[tuple[str, str], str] = field(default_factory=dict)
    precedence: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    continuations: Mapping[str, str] = field(default_factory=dict)
    pretrains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wraps: Mapping[str, str] = field(default_factory=dict)
    deployed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@cache
def projects() -> tuple[Project, ...]:
    """The projects that are here, by precedence, then by the names of their folders."""
    path = str(Path(__file__).with_name('projects'))
    folders = sorted(module.name for module in pkgutil.iter_modules([path]) if module.ispkg)
    found = [import_module(f'vit_plugin.projects.{folder}').PROJECT for folder in folders]
    return tuple(sorted(found, key=lambda project: -project.precedence))


def declared(table: str) -> dict[Any, Any]:
    """The rows of a table of all projects, such as ``'formats'``."""
    return {key: value for one in projects() for key, value in getattr(one, table).items()}

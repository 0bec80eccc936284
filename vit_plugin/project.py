"""The declaration of a project: a paper or another library, as a folder in ``vit_plugin/projects``.

The ``__init__.py`` of a folder declares what the project adds, as ``PROJECT``. The rest of the
package reads these tables and names no project, so a folder can be removed. Declarations import
nothing: modules are named as ``'module'`` and objects as ``'module:name'``, which are imported when
they are used.
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
        family: the folder that the project shares with others, and may import. Tests compare it
            with the imports.
        registered: for each registry of :mod:`vit_plugin.registry`, such as ``'MODELS'``, the name
            of each class -> its module.
        unavailable: names of models that people may look for -> a sentence why there is none.
        archs: variants of the encoder: name -> the ``'module:name'`` of an
            :class:`~vit_plugin.arch.Arch`.
        formats: weight formats: name -> ``'module:name'``.
        published: readers of third-party models, each as the ``'module:name'`` of a function: a
            :class:`~vit_plugin.weights.published.Published` -> the config of the same model here
            and its class names, or None for any other model. It may also return the weights by our
            names, if no format covers them.
        offered: names of published models -> license, image side in pixels, and address of the
            weights.
        models: the ``'module:name'`` of a :class:`~vit_plugin.config.task_model.TaskModel`, by its
            task and its name in ``--model``.
        precedence: projects with larger numbers come first. If the formats of two projects explain
            a checkpoint equally well, the first wins.
        names: patterns of our parameter names outside the encoder -> the
            :attr:`~vit_plugin.weights.rules.Rule.when` of their rule: a text that some key of a
            checkpoint must contain for the pattern to be read, or ''.
        hints: patterns of parameters -> a description of the arguments that create them.
        continuations: methods of ``pretrain --method`` that continue a model -> the file in
            ``configs/_base_/selfsup`` with neck, head and losses.
        pretraining_backbones: backbones that pre-train a
            :class:`~vit_plugin.models.VisionTransformer` -> their additional arguments.
        wrappers: backbones that wrap another library's module -> the ``'module:name'`` of a
            function: the name of a model and the content of a ``config.json`` -> its arguments, or
            {} for any other model.
        deployed: export adapters as ``'module:name'``, by the attribute of the model and the name
            of its class.
        folders: writers of transformers folders for detectors, each as the ``'module:name'`` of a
            function: a model, its section of a config, and a function for the config of an encoder
            -> the content of ``config.json`` and the name of a format, or None for any other model.
        stand_ins: replacements of MMPretrain's and mmcv's classes if these are not installed, as in
            ``registered``; under ``''`` those that no config names.
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
    pretraining_backbones: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wrappers: Mapping[str, str] = field(default_factory=dict)
    deployed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@cache
def projects() -> tuple[Project, ...]:
    """All projects, ordered by precedence, then by folder name."""
    path = str(Path(__file__).with_name('projects'))
    folders = sorted(module.name for module in pkgutil.iter_modules([path]) if module.ispkg)
    declarations = [import_module(f'vit_plugin.projects.{folder}').PROJECT for folder in folders]
    return tuple(sorted(declarations, key=lambda project: -project.precedence))


def declared_rows(table: str) -> dict[Any, Any]:
    """The rows of a table, such as ``'formats'``, over all projects."""
    return {key: value for project in projects() for key, value in getattr(project, table).items()}

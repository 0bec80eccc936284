"""A user's request for a training: the flags of ``vit-plugin train --data`` and ``pretrain``."""

import os
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vit_plugin.inference.saved_model import find_checkpoint

from .choices import DEFAULT_TASK, PRETRAINING


@dataclass
class Request:
    """The flags of ``vit-plugin train`` that stand in for a config.

    Raises:
        ConfigError: if there are no such weights.
    """

    data: str  # folder of the images
    task: str = DEFAULT_TASK  # a key of TASKS
    model: str = ''  # a key of models_of(task); default: its first
    # The backbone, see vit_plugin.arch.parse_arch; default: that of the weights, or a small hybrid.
    arch: str = ''
    weights: str | None = None  # a path, a run, https://, timm:// or hf://; None: from scratch
    epochs: int | None = None  # None, here and for batch_size and img_size: the recipe chooses
    batch_size: int | None = None
    img_size: int | None = None  # side in pixels
    tiles: int | None = None  # train and predict on tiles with this side in pixels
    no_flip: bool = False  # left and right matter, as in letters
    balance: bool = False  # take images of rare classes more often (arXiv:1908.03195, Appendix B.2)
    augment: str = ''  # a key of AUGMENTS: mix several images in a sample
    patience: int | None = None  # stop after this many validations in a row without improvement
    # A run, a checkpoint or timm://NAME to learn from, see vit_plugin.projects.distillation.
    teacher: str | None = None
    method: str = ''  # a key of METHODS, for a pre-training
    skip_invalid: bool = False  # leave out invalid boxes and images instead of stopping
    layout: str | None = None  # a layout file; None: anyfolder.yaml in the folder
    options: dict[str, Any] = field(default_factory=dict)  # flags that only some tasks take
    work_dir: str = ''  # default: work_dirs/ and the name of the data

    def __post_init__(self) -> None:
        if self.weights is not None:
            self.weights = locate_checkpoint(self.weights)
        if self.teacher:
            self.teacher = locate_checkpoint(self.teacher)
        if not self.arch and str(self.weights).startswith('timm://'):
            self.arch = str(self.weights)
        self.chooses_folder = not self.work_dir  # then another is taken if it holds a run
        if self.chooses_folder:
            self.work_dir = str(Path('work_dirs', Path(os.path.abspath(self.data)).name))

    @property
    def absolute_work_dir(self) -> str:
        """The absolute path of the work directory."""
        return os.path.abspath(self.work_dir)

    def path_of(self, name: str) -> str:
        """The absolute path of a file in the work directory."""
        return os.path.join(self.absolute_work_dir, name)

    def flag_values(self) -> dict[str, Any]:
        """The values of all flags, in the order of a command line; empty if not given."""
        fields = asdict(self)
        folder, options = fields.pop('work_dir'), fields.pop('options')
        return {**fields, **options, 'work_dir': folder}

    def command(self) -> str:
        """The equivalent command line."""
        flags = [
            f'--{name.replace("_", "-")}' + ('' if value is True else f' {shlex.quote(str(value))}')
            for name, value in self.flag_values().items()
            if value and (name, value) not in (('task', DEFAULT_TASK), ('task', PRETRAINING))
        ]
        verb = 'pretrain' if self.task == PRETRAINING else 'train'
        return ' '.join([f'vit-plugin {verb}', *flags])


def locate_checkpoint(checkpoint: str) -> str:
    """The URL of a checkpoint, or its absolute path, since a config may be run from elsewhere."""
    path = checkpoint if '://' in checkpoint else find_checkpoint(checkpoint)
    return path if '://' in path else os.path.abspath(path)

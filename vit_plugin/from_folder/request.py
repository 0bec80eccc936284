"""A user's request for a training, and the settings that follow for any task."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vit_plugin.arch import parse_arch
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.inference.saved_model import find_checkpoint
from vit_plugin.models import VisionTransformer
from vit_plugin.weights.saved_settings import saved_backbone, training_settings
from vit_plugin.zoo.data_config import data_config_of

from .readers.findings import Findings
from .readers.photos import read_sizes
from .readers.records import Photo

DEFAULT_TASK, PRETRAINING = 'classification', 'pretraining'
MOST_FILES = 200  # whose size is read
POOLED = ('cls_token', 'avg_featmap')  # what a classifier takes without a neck
# The model without --arch and --weights, by the shorter side of the images in pixels: the row that
# is the last one not above it. It learns few small images in minutes of one core (docs/results.md).
SMALL, LARGE = 64, 144
BLOCKS: dict[str, Any] = dict(embed_dims=192, num_layers=2, num_heads=3, feedforward_channels=384)
SMALL_HYBRIDS: dict[int, dict[str, Any]] = {
    0: dict(  # that of the recipe for CIFAR-10
        arch=BLOCKS,
        patch_embed=dict(
            type='PooledResNetEmbed',
            channels=(24, 64, 128, 192),
            patch_size=1,
            projection=False,
            whitened=True,
            skip=False,
            channels_last=True,
        ),
        numerics=dict(act_cfg=dict(approximate='none'), stem_norm_cfg=dict(type='BN')),
        encoder=dict(layer_scale_init_value=0.1),
    ),
    SMALL: dict(  # one more stage, and GroupNorm for the small batches of boxes and masks
        arch=BLOCKS,
        patch_embed=dict(type='PooledResNetEmbed', channels=(16, 32, 64, 128), patch_size=2),
        numerics=dict(stem_norm_cfg=dict(num_groups=8)),
    ),
    LARGE: dict(  # that of the recipe for BCCD: no convolution at full resolution, which costs most
        arch=dict(BLOCKS, num_layers=4, feedforward_channels=768),
        patch_embed=dict(type='ResNetEmbed', stage_depths=(2, 3), width=32, patch_size=2),
        numerics=dict(stem_norm_cfg=dict(num_groups=8)),
    ),
}
OF_MMDETECTION = ('detection', 'instance')  # tasks
# The first and the last row of a task. The last one, with maps from a stride of 4 on, misses thin
# shapes in masks (docs/results.md).
ROWS = dict(
    classification=(0, SMALL),
    detection=(SMALL, LARGE),
    instance=(SMALL, LARGE),
    segmentation=(SMALL, SMALL),
    pretraining=(0, SMALL),
)


@dataclass
class Request:
    """A request in place of a config. The fields are flags of ``vit-plugin train``.

    Raises:
        ConfigError: if the arch is unknown, if there are no such weights, or if they do not say
            their model.
    """

    data: str  # folder of the images
    task: str = DEFAULT_TASK  # a key of TASKS
    # See vit_plugin.arch.parse_arch; default: what the weights say, or one of SMALL_HYBRIDS.
    arch: str = ''
    weights: str | None = None  # a path, a run, https://, timm:// or hf://; None: from scratch
    epochs: int | None = None  # None, here and below: the recipe chooses
    batch_size: int | None = None
    img_size: int | None = None
    no_flip: bool = False  # left and right matter, as in letters
    balance: bool = False  # take images of rare classes more often (arXiv:1908.03195, Appendix B.2)
    patience: int | None = None  # end when so many validations in a row have not improved
    # A run, a checkpoint or timm://NAME to learn from, see vit_plugin.projects.distillation.
    teacher: str | None = None
    method: str = ''  # a key of METHODS, for a pre-training
    skip_invalid: bool = False  # leave out boxes and images that cannot be right, rather than stop
    work_dir: str = ''  # default: work_dirs/ and the name of the data

    def __post_init__(self) -> None:
        if self.task in OF_MMDETECTION:
            # Before a checkpoint's parts are looked up, which imports MMDetection.
            with needed_by(f'--task {self.task}'):
                import vit_plugin.detection  # noqa: F401
        if self.weights is not None and '://' not in self.weights:
            self.weights = find_checkpoint(self.weights)
        if self.teacher and self.task not in (DEFAULT_TASK, PRETRAINING):
            raise ConfigError(
                f'--teacher: a model of {self.task} has no single vector to learn; leave it out, '
                'or pre-train the backbone with it by vit-plugin pretrain.'
            )
        if self.teacher and '://' not in self.teacher:
            self.teacher = find_checkpoint(self.teacher)
        if not self.arch and str(self.weights).startswith('timm://'):
            self.arch = str(self.weights)
        if self.arch:
            parse_arch(self.arch)
        elif self.weights and not self.saved_backbone:
            raise ConfigError(
                f'--weights {self.weights!r} do not say of which model they are; give --arch, its '
                'name, such as R50+B/16.'
            )
        self.chooses_folder = not self.work_dir
        if self.chooses_folder:
            self.work_dir = str(Path('work_dirs', Path(self.data).resolve().name))

    @property
    def absolute_work_dir(self) -> str:
        """The work directory, found from any directory."""
        return os.path.abspath(self.work_dir)

    @property
    def from_scratch(self) -> bool:
        """True if the training begins without weights."""
        return self.weights is None

    @property
    def is_small(self) -> bool:
        """True if the model is one of :data:`SMALL_HYBRIDS`."""
        return not (self.arch or self.weights)

    @property
    def title(self) -> str:
        """The model, in words."""
        return self.arch or ('A small hybrid' if self.is_small else f'The model of {self.weights}')

    def backbone(self, size: int) -> dict[str, Any]:
        """The backbone's arguments, except its image size, for images with this shorter side."""
        if self.arch:
            return dict(arch=self.arch)
        if self.weights:
            saved = self.saved_backbone
            pooled = 'cls_token' if saved.get('with_cls_token', True) else 'avg_featmap'
            out_type = saved.get('out_type')
            return {**saved, 'out_type': out_type if out_type in POOLED else pooled}
        least, most = ROWS[self.task]
        size = min(max(size, least), most)
        row = max(pixels for pixels in SMALL_HYBRIDS if pixels <= size)
        return dict(SMALL_HYBRIDS[row], with_cls_token=False, out_type='avg_featmap')

    def command(self) -> str:
        """The command line that says the same."""
        flags = [
            f'--{name.replace("_", "-")}' + f' {shlex.quote(str(value))}' * (value is not True)
            for name, value in asdict(self).items()
            if value and (name, value) not in (('task', DEFAULT_TASK), ('task', PRETRAINING))
        ]
        verb = 'pretrain' if self.task == PRETRAINING else 'train'
        return ' '.join([f'vit-plugin {verb}', *flags])

    @cached_property
    def saved(self) -> dict[str, Any]:
        """The weights' image settings.

        See :func:`~vit_plugin.weights.saved_settings.training_settings`.
        """
        return training_settings(self.weights)

    @cached_property
    def saved_backbone(self) -> dict[str, Any]:
        """The backbone in a checkpoint, built once, so that it is checked before it is a config."""
        arguments = saved_backbone(self.weights)
        if arguments:
            with torch.device('meta'):
                VisionTransformer(**arguments)
        return arguments

    @cached_property
    def pixels(self) -> dict[str, Any]:
        """See :func:`~vit_plugin.zoo.data_config.data_config_of`."""
        return data_config_of(self.arch, self.weights)

    @property
    def normalization(self) -> dict[str, Any]:
        """The arguments of a ``data_preprocessor`` for images that are read in BGR."""
        return {
            key: [round(255 * value, 3) for value in self.pixels[key]] for key in ('mean', 'std')
        }

    def native_size(self) -> int:
        """The longer side of the training images of the weights, or of the model they name."""
        name = self.weights if str(self.weights).startswith('timm://') else self.arch
        size = (
            parse_arch(name or self.saved_backbone['arch'])
            .complete(img_size=self.saved.get('img_size'))
            .img_size
        )
        return size if isinstance(size, int) else max(size)

    def assumed(self) -> str:
        """A sentence on what the weights do not say of their images, or nothing."""
        if self.weights is None or self.weights.startswith(('timm://', 'hf://')):
            return ''
        needed = dict(mean='mean and deviation')
        if self.img_size is None and self.task == DEFAULT_TASK:
            needed['img_size'] = 'size'
        missing = ' and the '.join(words for key, words in needed.items() if key not in self.saved)
        return (
            f'The weights do not say the {missing} of their images; those of the arch are assumed.'
            * bool(missing)
        )

    def meta_backbone(self, size: int, **arguments: Any) -> VisionTransformer:
        """The backbone without memory for its weights."""
        with torch.device('meta'):
            return VisionTransformer(**{**self.backbone(size), **arguments})


def image_scale(request: Request, photos: Sequence[Photo], largest: int) -> tuple[int, int]:
    """The data's width and height, with a longer side of at most ``largest``.

    Images are resized within them.
    """
    sides = typical_size(photos)
    longer = request.img_size or min(max(sides), largest)
    width, height = (max(round(side * longer / max(sides)), 1) for side in sides)
    return width, height


def typical_size(photos: Sequence[Photo]) -> tuple[int, int]:
    """The median width and height of some of these photographs, in pixels.

    Raises:
        ConfigError: if none of them can be read.
    """
    chosen = [
        photos[i] for i in np.linspace(0, len(photos) - 1, min(len(photos), MOST_FILES)).astype(int)
    ]
    sizes = [photo.size for photo in chosen if any(photo.size)]
    sizes = sizes or [photo.size for photo in read_sizes(chosen, Findings())]
    if not sizes:
        raise ConfigError(
            f'--data: none of the images can be read, such as {str(photos[0].path)!r}.'
        )
    width, height = np.median(sizes, axis=0)
    return int(width), int(height)


def rounded_up(size: int, stride: int) -> int:
    """The next multiple of the stride."""
    return -(-size // stride) * stride


def counted(number: int, thing: str) -> str:
    """A number of things, in words."""
    ending = 'es' if thing.endswith('s') else 's'
    return f'{number} {thing}{ending * (number != 1)}'

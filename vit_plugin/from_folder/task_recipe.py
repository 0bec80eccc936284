"""The base class of recipes, which plan a training on a folder of data.

A recipe reads the folder and provides the sections of a config. :mod:`.recipe` assembles them, and
:mod:`.write` writes the file.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from mmengine.device import get_device

from anyfolder.layouts.find_layout import read_laid_out
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.probe_cache import CACHE_NAME, ProbeCache
from anyfolder.readers.splits import Split
from anyfolder.wording import counted
from vit_plugin.arguments.fields import Pipeline, Section
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.suggestions import check_choice

from .choices import AUGMENTS, PRETRAINING, check_model, check_task_flags
from .framework_lists import as_text_list
from .image_scale import check_side
from .mixing import Mixing
from .request import Request
from .schedule import Schedule
from .small_hybrids import SMALL_SIDE
from .starting_point import StartingPoint

# The words of a summary for a starting point, by StartingPoint.schedule_key.
START_WORDS = dict(fine_tuned='Fine-tuned', stem='New blocks on a trained stem')


class TaskRecipe:
    """Recipe of a training. A subclass reads the folder, and provides its sections of the config.

    Attributes:
        packages: what must be installed.
        named_arch: the default arch without ``--arch`` and ``--weights``. Empty: a small hybrid.
        hybrid_range: the small hybrids that fit the task, see :class:`StartingPoint`.
        schedules: schedules by :attr:`StartingPoint.schedule_key`, and ``small_on_gpu`` if that
            differs from ``small``.
        held_out: how validation images are chosen if the data set has no split, in words.
        continued_tasks: the tasks whose complete models are accepted as weights.
        loads_model: whether the weights are loaded into the whole model instead of its backbone.
        multispectral_preprocessor: changes of the ``data_preprocessor`` for multispectral images.
            None: only photographs are supported.
        mixing: how several images are mixed in training, or None.
        loader: additional arguments of the training's data loader.
        additional_sections: sections of the config that the task or model adds.
        checkpoint_hook: additional arguments of the checkpoint hook.
        bases: the files that the config inherits.
        monitor: the metric that decides which checkpoint is best.
        list_suffix: suffix of the files that list the images of each split.

    Raises:
        MissingExtraError: if a package is not installed.
        ConfigError: if a flag does not fit the task; see also :class:`StartingPoint`.
    """

    packages: Sequence[str] = ()
    named_arch = ''
    hybrid_range: tuple[int, int] = (0, SMALL_SIDE)
    schedules: ClassVar[Mapping[str, Schedule]]
    held_out = 'held out, a tenth of all'
    continued_tasks: tuple[str, ...] = ()
    loads_model = False
    multispectral_preprocessor: ClassVar[Mapping[str, Any] | None] = None
    mixing: Mixing | None = None
    loader: ClassVar[Mapping[str, Any]] = {}
    additional_sections: ClassVar[Mapping[str, Any]] = {}
    checkpoint_hook: ClassVar[Mapping[str, Any]] = {}
    bases: Sequence[str]
    monitor: str
    list_suffix = '.txt'

    def __init__(self, request: Request, decode_all: bool = False) -> None:
        check_model(request.task, request.model)
        check_choice('--augment', request.augment, AUGMENTS)
        check_task_flags(request.task, request.flag_values())
        # Checked before the classes in a checkpoint are looked up, which imports them.
        for package in self.packages:
            with needed_by(f'--task {request.task}'):
                import_module(package)
        self.request = request
        self.probes = ProbeCache(request.data, Path(request.work_dir, CACHE_NAME), decode_all)
        arch = request.arch or ('' if request.weights else self.named_arch)
        self.start = StartingPoint(arch, request.weights, self.hybrid_range, self.continued_tasks)
        saved = self.start.continued
        if saved and request.task not in (*saved.tasks, PRETRAINING):
            raise ConfigError(
                f'--weights {request.weights!r} are of a model for --task '
                f'{" or ".join(saved.tasks)}; give this task, or the weights of a backbone.'
            )
        if request.img_size:
            check_side(self.start, request.img_size)

    def tree(self) -> Tree:
        """The files of the data."""
        return Tree(self.request.data, self.probes)

    @cached_property
    def listing(self) -> Listing:
        """The data, read and checked at the first access."""
        tree = self.tree()
        laid_out = read_by_layout(tree, self.request)
        listing = laid_out[0] if laid_out else self.read(tree)
        self.check(listing)
        return listing

    # Provided by a subclass.

    def read(self, tree: Tree) -> Listing:
        """Read a folder without a layout file."""
        raise NotImplementedError

    def check(self, listing: Listing) -> None:
        """Raise a ``ConfigError`` for data that the frameworks reject."""

    @cached_property
    def size(self) -> tuple[int, int]:
        """The width and height within which images are resized."""
        raise NotImplementedError

    def model(self) -> Section:
        """The section ``model``."""
        raise NotImplementedError

    def preprocessor(self) -> Section:
        """The section ``data_preprocessor``; {} if the model has one."""
        return {}

    def pipelines(self) -> tuple[Pipeline, Pipeline]:
        """The transforms in training, and in a test."""
        raise NotImplementedError

    def list_of(self, split: Split) -> str:
        """The content of the file that lists a split's images; by default one path per line."""
        return as_text_list(self.listing, self.listing.parts[split], with_labels=False)

    def dataset(self, split: Split) -> Section:
        """The data set of a split, without its pipeline and classes."""
        raise NotImplementedError

    def metric(self, split: Split) -> Section:
        """The metric of a validation."""
        raise NotImplementedError

    def write_maps(self, folder: Path) -> None:
        """Write the masks or maps that belong to the lists, if any, into the work directory."""

    # Derived from the request and the data.

    @cached_property
    def schedule(self) -> Schedule:
        """The schedule for this model."""
        key = self.start.schedule_key
        on_gpu = key == 'small' and get_device() != 'cpu'
        return self.schedules.get('small_on_gpu' if on_gpu else key) or self.schedules[key]

    @cached_property
    def batch_size(self) -> int:
        """Images per step."""
        count = self.images_per_pass('train')
        return min(self.request.batch_size or self.schedule.batch_size_for(count), count)

    def images_per_pass(self, split: Split) -> int:
        """The number of images, or tiles of them, in a pass over a split."""
        return len(self.listing.parts[split])

    @cached_property
    def epochs(self) -> int:
        """Length of the training in epochs."""
        count = self.images_per_pass('train')
        return self.request.epochs or self.schedule.epochs_for(count, self.batch_size)

    def list_path(self, split: Split) -> str:
        """The absolute path of the file that lists the images of a split."""
        return self.request.path_of(f'{split}{self.list_suffix}')

    def summary(self) -> str:
        """The images and the length of the training, in sentences."""
        listing, (width, height) = self.listing, self.size
        train, test = len(listing.train), len(listing.parts['test'])
        steps = math.ceil(self.images_per_pass('train') / self.batch_size)
        purpose = self.held_out if listing.held_out else 'to validate'
        start = START_WORDS.get(self.start.schedule_key, 'From scratch')
        text = (
            f'{counted(train, "image")} to train on, {counted(len(listing.val), "image")} {purpose}'
            + (f', {counted(test, "image")} for vit-plugin test' if test else '')
            + f'. {start}, {counted(self.epochs, "epoch")} of '
            f'{counted(steps, "step")}, images within {width} x '
            f'{height} pixels.'
        )
        if self.request.balance:
            text += (
                ' --balance repeats images of rare classes, so that an epoch may have more steps.'
            )
        if listing.bands:
            text += (
                f' Images of {counted(listing.bands, "band")}: mean and deviation of each are in '
                'the config, and no augmentation changes colors.'
            )
        return text


def read_by_layout(tree: Tree, request: Request, **more: Any) -> tuple[Listing, Any] | None:
    """The data by a layout file, see :func:`~anyfolder.layouts.find_layout.read_laid_out`."""
    return read_laid_out(
        tree,
        request.data,
        request.task,
        request.layout,
        request.skip_invalid,
        tree.probes.decode_all,
        **more,
    )


def flip_steps(request: Request, **arguments: Any) -> Pipeline:
    """The transform that flips half of the images, or [] with ``--no-flip``."""
    return [] if request.no_flip else [dict(type='RandomFlip', prob=0.5, **arguments)]

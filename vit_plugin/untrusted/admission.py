"""The config inside a checkpoint is data from a stranger. This is the one door it comes through.

What it names is built only if it is registered, and of the kind that its place takes: parts of a
model are modules, the steps of a pipeline are transforms, and so on. MMEngine would import any
other name by its path. Settings that are of no use to predict or to test are left out: hooks,
optimizers, the weights to begin with. Then :mod:`vit_plugin.untrusted.closed` sees to it that what
is built opens nothing of its own.

A config that a person gives by ``--config`` is a program and does not come here.
"""

import inspect
import re
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import PurePath
from typing import Any, NamedTuple

from mmengine import registry as root
from mmengine.hooks import EMAHook
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.files.images import IMAGE_SUFFIXES

from .closed import REMEDY, closed

SCOPES = ('mmengine', 'mmpretrain', 'mmdet', 'mmseg', 'vit_plugin')
DATA_SUFFIXES = ('.txt', '.csv', '.json', '.xml', *IMAGE_SUFFIXES)
# That read or resize an image.
BACKENDS = ('cv2', 'pillow', 'turbojpeg', 'tifffile', 'numpy', 'nifti', 'local', 'disk')
# Some classes evaluate a string. Without these signs, nothing in it is called.
CALLS = re.compile(r'[(\[{`;]|\blambda\b')
FOLDER = re.compile(r'.*(root|prefix|dir)')  # keys whose strings are folders
FILE = re.compile(r'.*file')  # keys whose strings are files


class Kind(NamedTuple):
    """The kinds of classes that a place takes, and the keys that are used there.

    Attributes:
        what: in words.
        registries: where its classes are registered, and their base; None takes functions too.
        inside: the kinds of other places inside it. Everything else inside it is of its own kind.
        unused: settings that are left out.
        words: whether a type may be a word that is in no registry, such as the ``'learned'`` of a
            ``pos_embed``.
        reads: whether its strings may be files of data. Otherwise none is opened.
    """

    what: str
    registries: tuple[tuple[root.Registry, type | None], ...] = ()
    inside: Mapping[str, str] = {}
    unused: tuple[str, ...] = ()
    words: bool = False
    reads: bool = False


IN_A_MODEL = ((root.MODELS, nn.Module), (root.TASK_UTILS, object), (root.TRANSFORMS, None))
IN_A_LOADER = {
    'dataset': 'dataset',
    'sampler': 'sampler',
    'batch_sampler': 'sampler',
    'collate_fn': 'function',
    'worker_init_fn': 'function',
}
KINDS = {
    'model': Kind(
        'part of a model',
        IN_A_MODEL,
        words=True,
        unused=('init_cfg', 'pretrained', 'train_cfg', 'batch_augments', 'teacher'),
    ),
    'transform': Kind('transform', ((root.TRANSFORMS, None),), reads=True),
    'dataset': Kind(
        'data set',
        ((root.DATASETS, None),),
        {'pipeline': 'transform', 'metainfo': 'values'},
        reads=True,
    ),
    'loader': Kind('part of a data loader', (), IN_A_LOADER),
    'sampler': Kind('sampler', ((root.DATA_SAMPLERS, object),)),
    'function': Kind('function', ((root.FUNCTIONS, None),)),
    'metric': Kind(
        'metric',
        ((root.METRICS, object), (root.EVALUATOR, object)),
        reads=True,
        # Where results are written is said by --out.
        unused=('outfile_prefix', 'format_only', 'output_dir', 'out_file_path'),
    ),
    'loop': Kind('loop', ((root.LOOPS, object),)),
    'visualizer': Kind(
        'visualizer', ((root.VISUALIZERS, object),), unused=('vis_backends', 'save_dir', 'image')
    ),
    'hook': Kind('average of the weights', ((root.HOOKS, EMAHook),)),
    'values': Kind('plain value'),
}
# A word in a model is none of these.
ELSEWHERE = (
    root.MODELS,
    root.DATASETS,
    root.METRICS,
    root.EVALUATOR,
    root.VISUALIZERS,
    root.VISBACKENDS,
    root.HOOKS,
    root.LOOPS,
    root.RUNNERS,
    root.INFERENCERS,
    root.FUNCTIONS,
    root.DATA_SAMPLERS,
)

PREDICT = dict(
    model='model',
    data_preprocessor='model',
    default_scope='values',
    optimize='values',
    test_dataloader='loader',
)
TEST = PREDICT | dict(
    visualizer='visualizer',
    test_evaluator='metric',
    test_cfg='loop',
    tta_model='model',
    tta_pipeline='transform',
    custom_hooks='hook',
    lora='values',
    float8='values',
    sharding='values',
    find_unused_parameters='values',
    randomness='values',
    env_cfg='values',
    log_level='values',
    verbose='values',
)
PROBE = TEST | dict(
    train_dataloader='loader', val_dataloader='loader', val_evaluator='metric', val_cfg='loop'
)
# By what is done with a checkpoint: the settings of its config that are used.
USES = dict(
    start=dict(model='model', default_scope='values'), predict=PREDICT, test=TEST, probe=PROBE
)


def admit(settings: Mapping[str, Any], path: str, use: str = 'predict') -> dict[str, Any]:
    """The part of a checkpoint's config that is used, if nothing in it could run code.

    Args:
        settings: the config, plain values.
        path: where the checkpoint is, for messages.
        use: ``'start'`` to begin a training with, ``'predict'``, ``'test'`` or ``'probe'``.

    Raises:
        ConfigError: names the place in the config that could.
    """
    scope = settings.get('default_scope', 'mmpretrain')
    if scope not in SCOPES:
        raise _refusal(path, 'default_scope', f'the package {scope!r}')
    used = {name: value for name, value in settings.items() if name in USES[use]}
    if use == 'predict' and 'test_dataloader' in used:
        used['test_dataloader'] = _without_data(used['test_dataloader'])
    if 'custom_hooks' in used:  # the only kind with a part in a test puts the average in place
        hooks = used['custom_hooks'] or ()
        used['custom_hooks'] = [hook for hook in hooks if _is_average(hook, scope)]
    door = _Door(path)
    return {name: door.admit(value, USES[use][name], name, scope) for name, value in used.items()}


def _without_data(loader: Any) -> dict[str, Any]:
    """A data loader's config with the pipeline and classes of its data set, without its files."""
    kept = ('type', 'metainfo', 'pipeline', '_scope_')

    def stripped(dataset: Any) -> Any:
        if not isinstance(dataset, Mapping):
            return dataset
        inner = {key: stripped(dataset[key]) for key in ('dataset',) if key in dataset}
        return {**{key: dataset[key] for key in kept if key in dataset}, **inner}

    dataset = loader.get('dataset') if isinstance(loader, Mapping) else None
    return dict(dataset=stripped(dataset)) if dataset else {}


class _Door:
    """Looks at every value of a config from a checkpoint, and raises a ``ConfigError`` for some."""

    def __init__(self, path: str) -> None:
        self.path = path

    def admit(self, value: Any, kind: str, place: str, scope: str) -> Any:
        """A value without what is unused, if it is of the kind that its place takes."""
        if isinstance(value, Mapping):
            return self._admit_part(value, kind, place, scope)
        if isinstance(value, (list, tuple)):
            items = (self.admit(item, kind, f'{place}.{i}', scope) for i, item in enumerate(value))
            return type(value)(items)
        if isinstance(value, str):
            self._check_string(value, KINDS[kind], place)
        return value

    def _admit_part(self, part: Mapping, kind: str, place: str, scope: str) -> dict[str, Any]:
        scope = part.get('_scope_', scope)
        if scope not in SCOPES:
            raise _refusal(self.path, f'{place}._scope_', f'the package {scope!r}')
        if 'type' in part and KINDS[kind].registries:
            self._check_type(part['type'], KINDS[kind], f'{place}.type', scope)
        inside, found = KINDS[kind].inside, {}
        for key, value in part.items():
            if key in ('type', '_scope_'):
                found[key] = value
            elif key not in KINDS[kind].unused:
                found[key] = self.admit(value, inside.get(key, kind), f'{place}.{key}', scope)
        return found

    def _check_type(self, name: Any, kind: Kind, place: str, scope: str) -> None:
        if not isinstance(name, str) or _is_path(name):
            raise _refusal(self.path, place, f'{name!r} by its path')
        for registry, base in kind.registries:
            found = _registered(registry, name, scope)
            if found is not None and (base is None or _is_below(found, base)):
                return
        word = kind.words and name.isidentifier()
        if not word or any(_registered(other, name, scope) for other in ELSEWHERE):
            raise _refusal(self.path, place, f'{name!r}, which is not registered as a {kind.what}')

    def _check_string(self, value: str, kind: Kind, place: str) -> None:
        names = place.split('.')
        key = next(name for name in reversed(names) if not name.isdecimal())
        if '://' in value and not value.startswith('timm://'):
            raise _refusal(self.path, place, f'the address {value!r}')
        if kind.registries and CALLS.search(value):
            raise _refusal(self.path, place, f'{value!r}, which could be code')
        if kind.reads and key.endswith('backend') and value not in BACKENDS:
            raise _refusal(self.path, place, f'{value!r}, which is none of {", ".join(BACKENDS)}')
        if kind.reads and not any(FOLDER.fullmatch(name) for name in names):
            suffix = PurePath('x' + value).suffix.lower()
            nameless = not suffix and not (value and FILE.fullmatch(key))
            if suffix not in DATA_SUFFIXES and not nameless:
                raise _refusal(
                    self.path,
                    place,
                    f'the file {value!r}, whose suffix is none of {", ".join(DATA_SUFFIXES)}',
                )


def _is_path(name: str) -> bool:
    """True if a name is more than one in a registry, maybe behind a framework's."""
    scope, dot, name = name.rpartition('.')
    return bool(dot) and scope not in SCOPES


def _is_below(found: Any, base: type) -> bool:
    return inspect.isclass(found) and issubclass(found, base)


def _is_average(hook: Any, scope: str) -> bool:
    name = hook.get('type') if isinstance(hook, Mapping) else None
    return isinstance(name, str) and _is_below(_registered(root.HOOKS, name, scope), EMAHook)


def _refusal(path: str, place: str, what: str) -> ConfigError:
    return ConfigError(
        f'The config in {path!r} names at {place} {what}, and no code is run and '
        f'nothing opened that a checkpoint names; {REMEDY}.'
    )


def _registered(registry: root.Registry, name: str, scope: str) -> Any:
    """The class registered under a name, or None. Nothing is imported by its path."""
    if _is_path(name):
        return None
    with suppress(ImportError):  # of a framework that is not installed
        import_module(f'{scope}.registry')
    here = registry.children.get(scope, registry)  # some have no child of this framework
    # MMDetection's data sets print that they could not import OneDL.
    with (
        closed(name, files=False),
        suppress(RuntimeError, ConfigError),
        redirect_stdout(StringIO()),
    ):
        return here.get(name)
    return None

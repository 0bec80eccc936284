"""Explain errors of MMEngine and torch in one sentence."""

import builtins
import errno
import inspect
import re
import socket
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from types import FrameType
from typing import Any

import torch
from mmengine.registry import Registry
from mmengine.runner import BaseLoop

from vit_plugin.errors import ConfigError, MissingExtraError
from vit_plugin.registry import SCOPE

SEE_MORE = 'give --traceback to see where'

# Known errors: a pattern of their text, and a sentence with the groups of the pattern.
KNOWN = (
    (r'environment variable (\w+) expected|^\'?(SLURM_\w+|OMPI_\w+|RANK|LOCAL_RANK|WORLD_SIZE)\'?$',
     "--launcher: the environment has no {0}, so that this process was not started by that launcher; start with "
     'tools/dist_train.sh or tools/slurm_train.sh, or leave --launcher out'),
    (r'(EADDRINUSE|[Aa]ddress already in use)',
     'the port for the processes to meet is taken by another program; give another, such as PORT=29501'),
    (r'Found no NVIDIA driver|Torch not compiled with (\w+) enabled|No (\w+) GPUs are available|invalid device ordinal',
     'the device that is asked for is not in this machine; leave --device out, or give --device cpu'),
    (r'DataLoader worker \(pid\(?s?\)? ?([\d, ]+)\) (?:is killed|exited)',
     'a process that loads data was killed (pid {0}), as happens when memory runs out; give fewer with '
     '--cfg-options train_dataloader.num_workers=NUMBER'),
    (r'unable to (?:open shared memory|mmap|write to file </torch)',
     'the shared memory for data workers is full; make /dev/shm larger, or give num_workers=0 in the data loaders'),
)


def sentence(error: BaseException) -> str | None:
    """The sentence to print instead of a traceback, or None to keep the traceback.

    An unknown error during training keeps its traceback, because repeating such a run is expensive.
    """
    if isinstance(error, (ConfigError, MissingExtraError)):
        return str(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    said = known(error) or _of_building(error, frames) or _of_the_best(error, frames)
    if said or _has_trained(frames):
        return said and (said if said.endswith(('.', '?')) else f'{said}.')
    return f'{type(error).__name__}: {first_line(error)}; {SEE_MORE} it comes from.'


def known(error: BaseException) -> str | None:
    """The sentence, without its full stop, for a known error of the machine or the settings."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return ('there is not enough memory; give a smaller train_dataloader.batch_size, model.backbone.with_cp=True '
                'or --amp')
    text = f'{error}'
    for pattern, said in KNOWN:
        if match := re.search(pattern, text):
            return said.format(*(group for group in match.groups() if group))
    if isinstance(error, OSError) and not isinstance(error, (socket.gaierror, ConnectionError)) and error.errno:
        path = f'{error.filename!r}' if error.filename else 'a file'
        doing = 'written' if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS) else 'used'
        return f'{path} cannot be {doing} ({error.strerror}); make room, or give another path'
    return None


def _of_building(error: BaseException, frames: list[FrameType]) -> str | None:
    """The sentence for an error while a part of the config was built. It suggests the nearest name."""
    builders = [frame.f_locals for frame in frames if frame.f_code.co_name in BUILDERS and 'registry' in frame.f_locals]
    if not builders:
        return None
    local = builders[-1]
    kind, registry = local.get('obj_cls'), local['registry']
    settings = local.get('args') or local.get('cfg') or {}
    if kind is None:
        name = settings.get('type') or local.get('obj_type') if isinstance(settings, dict) else None
        name = local.get('obj_type') or name
        if name is None:
            return f'a part of the config has no type: {_short(settings)}'
        # MMEngine imports a framework when the first of its names is asked for, and a framework asserts versions.
        if isinstance(error, (ImportError, AssertionError)):
            return (f'the package of {name!r} cannot be imported ({first_line(error)}); mend the installation, or '
                    f'{SEE_MORE} it comes from')
        return f'there is no {name!r} among the {registry.name}s{nearest(str(name), registered(registry))}'
    called = getattr(kind, '__name__', str(kind))
    text = first_line(error)
    if wrong := re.search(r"unexpected keyword argument '(\w+)'", text):
        return f'{called} has no setting {wrong[1]!r}{nearest(wrong[1], parameters(kind))}'
    if missing := re.search(r'missing \d+ required (?:positional|keyword-only) arguments?: (.*)', text):
        return f'{called} needs the setting {missing[1]}'
    if isinstance(error, (TypeError, ValueError, KeyError, AssertionError, AttributeError, RuntimeError, LookupError,
                          NotImplementedError, ArithmeticError, ImportError)):
        return f'{called} does not take the settings {_short(settings)} ({text}); {SEE_MORE} it comes from'
    return None


def _of_the_best(error: BaseException, frames: list[FrameType]) -> str | None:
    """The sentence for a checkpoint hook that does not find the metric of the best checkpoint."""
    locals_ = frames[-1].f_locals
    if not isinstance(error, KeyError) or not {'metrics', 'key_indicator'} <= locals_.keys():
        return None
    return (f'default_hooks.checkpoint.save_best={locals_["key_indicator"]!r} is none of the metrics, which are '
            f'{", ".join(locals_["metrics"])}; choose one of them or \'auto\'')


BUILDERS = ('build_from_cfg', 'build_scheduler_from_cfg', 'build_model_from_cfg')


def registered(registry: Registry) -> set[str]:
    """The names in a registry, in its parents, and with their scope in its children."""
    names: set[str] = set()
    while registry is not None:
        names |= set(registry.module_dict)
        for scope, child in registry.children.items():
            if scope == SCOPE:
                child.import_from_location()
            names |= {f'{scope}.{name}' for name in (*child.module_dict, *getattr(child, 'later', ()))}
        registry = registry.parent
    return names


def parameters(kind: Any) -> set[str]:
    """The arguments of a class or function, including those that it passes to its parents."""
    names: set[str] = set()
    for part in inspect.getmro(kind) if inspect.isclass(kind) else [kind]:
        if part in vars(builtins).values():
            continue
        try:
            taken = inspect.signature(part.__init__ if inspect.isclass(part) else part).parameters.values()
        except (TypeError, ValueError):
            continue
        names |= {one.name for one in taken if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return names - {'self'}


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that are similar to a wrong one, as the end of a sentence, with its full stop. Scopes are ignored."""
    names = sorted(names)
    bare = {one: one.rpartition('.')[2] for one in names}
    near = get_close_matches(name.rpartition('.')[2], list(bare.values()), 3, 0.7)
    if near:
        return f'; did you mean {" or ".join(dict.fromkeys(one for one in names if bare[one] in near))}?'
    return f'; there are {", ".join(names)}.' if 0 < len(names) <= 16 else '.'


def first_line(error: BaseException) -> str:
    """The message of an error, shortened to one line."""
    text = f'{error}'.strip() if not isinstance(error, KeyError) else f'no {error}'
    line = next((line.strip() for line in text.splitlines() if line.strip()), 'without a message')
    return _short(line, 300).rstrip('.')


def _short(value: Any, length: int = 120) -> str:
    text = ' '.join(f'{value}'.split())
    return text if len(text) <= length else f'{text[:length]} ...'


def _has_trained(frames: list[FrameType]) -> bool:
    """Whether a training loop in the traceback has taken a step."""
    loops = (frame.f_locals.get('self') for frame in frames)
    return any(isinstance(loop, BaseLoop) and getattr(loop, '_iter', 0) > 0 for loop in loops)

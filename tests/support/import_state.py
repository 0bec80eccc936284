"""Run by test_import.py: prints what importing modules of the package changes in the process.

The arguments are names of modules, sorted. They are imported in groups of one subpackage, and the
global state is compared before and after each. Libraries that the package uses are imported first,
so that only changes by our modules remain. Prints JSON: subpackage -> what changed -> its text
before and after.
"""

import importlib
import json
import logging
import os
import random
import sys
import warnings
from contextlib import suppress
from itertools import groupby

from vit_plugin.importable import make_importable

warnings.simplefilter('ignore')
make_importable()
for name in (
    'cv2',
    'PIL.TiffImagePlugin',
    'matplotlib.pyplot',
    'mmcv.transforms',
    'mmengine.runner',
    'mmpretrain.apis',
    'mmpretrain.datasets',
    'mmpretrain.models',
    'mmdet.models',
    'mmseg.datasets',
    'mmseg.evaluation',
    'mmseg.models',
    'timm',
    'torchvision.transforms.v2',
    'pydantic',
    'sklearn.datasets',
    'safetensors.torch',
    'huggingface_hub',
    'onnxruntime',
    'requests',
    'torch.distributed.checkpoint',
    'torch.distributed.fsdp',
):
    with suppress(ImportError):
        importlib.import_module(name)

import cv2  # noqa: E402
import matplotlib  # noqa: E402
import mmengine.registry  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from mmengine.config.utils import MODULE2PACKAGE  # noqa: E402
from mmengine.registry import Registry  # noqa: E402
from mmengine.runner import CheckpointLoader  # noqa: E402
from torch.utils.flop_counter import flop_registry  # noqa: E402


def registries():
    """MMEngine's registries and the frameworks' children of them, with names."""
    for name, root in vars(mmengine.registry).items():
        if isinstance(root, Registry):
            yield f'mmengine {name}', root
            for scope, child in root._children.items():
                if scope != 'vit_plugin':
                    yield f'{scope} {name}', child


def full_names(callables):
    """A mapping with the full name of each value, so that it can be compared and printed."""
    return {
        str(key): f'{getattr(value, "__module__", "")}.{getattr(value, "__qualname__", value)}'
        for key, value in dict(callables).items()
    }


def replaced_functions():
    """Functions and classes of other libraries that objects of vit_plugin have replaced."""
    replaced = []
    for module in list(sys.modules.values()):
        name = getattr(module, '__name__', '')
        if name.partition('.')[0] not in (
            'torch',
            'mmengine',
            'mmcv',
            'mmpretrain',
            'timm',
            'torchvision',
            'numpy',
        ):
            continue
        for owner in (
            module,
            *(value for value in list(vars(module).values()) if isinstance(value, type)),
        ):
            for key, value in list(vars(owner).items()):
                if str(getattr(value, '__module__', '')).startswith('vit_plugin'):
                    replaced.append(f'{name}.{getattr(owner, "__name__", "")}.{key}')
    return sorted(set(replaced))


def state():
    """Global state of the process that an import might change."""
    module, optimizer = sys.modules['torch.nn.modules.module'], sys.modules['torch.optim.optimizer']
    hooks = {
        name: full_names(value)
        for name, value in vars(module).items()
        if name.startswith('_global_') and hasattr(value, 'keys')
    }
    hooks |= {
        name: full_names(value)
        for name, value in vars(optimizer).items()
        if name.startswith('_global_') and hasattr(value, 'keys')
    }
    hooks |= {
        f'Optimizer.{name}': full_names(getattr(torch.optim.Optimizer, name))
        for name in ('_global_optimizer_pre_hooks', '_global_optimizer_post_hooks')
        if hasattr(torch.optim.Optimizer, name)
    }
    return dict(
        hooks,
        flops=sorted(map(str, flop_registry)),
        schemes={
            prefix: loader
            for prefix, loader in full_names(CheckpointLoader._schemes).items()
            # The package may add loaders, but not replace others.
            if not loader.startswith('vit_plugin.')
        },
        packages=dict(MODULE2PACKAGE),
        registries={name: full_names(registry.module_dict) for name, registry in registries()},
        warnings=[str(entry) for entry in warnings.filters],
        logging=[logging.root.level, list(map(str, logging.root.handlers))],
        loggers={
            name: [logger.level, logger.propagate, len(logger.handlers)]
            for name, logger in logging.root.manager.loggerDict.items()
            if isinstance(logger, logging.Logger) and not name.startswith(('vit_plugin', 'torch'))
        },
        random=[
            str(random.getstate())[:200],
            str(np.random.get_state())[:200],
            torch.get_rng_state().sum().item(),
        ],
        torch=[
            torch.get_num_threads(),
            str(torch.get_default_dtype()),
            torch.is_grad_enabled(),
            torch.backends.mkldnn.enabled,
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            str(torch.utils.data.get_worker_info()),
        ],
        safe_globals=sorted(map(str, torch.serialization.get_safe_globals())),
        cv2=cv2.getNumThreads(),
        matplotlib=[
            matplotlib.get_backend(),
            {key: str(value) for key, value in matplotlib.rcParams.items()},
        ],
        environment=dict(os.environ),
        path=list(sys.path),
        excepthook=str(sys.excepthook),
    )


before = state()
changed = {}
for top_level, names in groupby(sys.argv[1:], key=lambda name: name.split('.')[1]):
    for name in names:
        with suppress(ImportError):  # an extra that is not installed
            importlib.import_module(name)
    after = state()
    for key in after:
        if before[key] != after[key]:
            changed.setdefault(top_level, {})[key] = (
                str(before[key])[-300:],
                str(after[key])[-300:],
            )
    before = after
if replaced := replaced_functions():
    changed['vit_plugin'] = {'functions of other libraries': replaced}
print(json.dumps(changed))

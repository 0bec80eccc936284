"""Settings and fixtures that all tests share."""

import functools
import gc
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator

import mmengine.config.utils
import mmengine.registry
import pytest
import torch
import torch.distributed as dist
from hypothesis import settings
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope
from mmengine.runner import CheckpointLoader
from tiny_models import TINY

import vit_plugin.detection  # noqa: F401  before any test imports mmdet

# The tests run on the CPU, since some fork this process. benchmarks/gpu.py tests on a GPU.
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')

# Hypothesis draws the same examples in every run, so that the result depends on the commit only.
# --hypothesis-profile=default draws others.
# No deadline: how long an example takes depends on the machine, not on the code.
settings.register_profile('same', derandomize=True, deadline=None)
settings.load_profile('same')

# MMEngine's runs fork. The processes that Python 3.14 starts by default cannot import a test.
multiprocessing.set_start_method('fork', force=True)

if 'PYTEST_XDIST_WORKER' in os.environ:  # several processes share the processor
    torch.set_num_threads(1)


def pytest_collection_finish() -> None:
    """Leave what was imported out of later garbage collections.

    MMEngine starts one for each data set.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each folder if ``DURATIONS_BY_FOLDER`` is set, as by ``.ci/run``."""
    if 'DURATIONS_BY_FOLDER' not in os.environ:
        return
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                folder = report.nodeid.partition('::')[0].rpartition('/')[0]
                seconds['/'.join(folder.split('/')[:2])] += report.duration
    terminalreporter.section('seconds by folder')
    for folder, taken in seconds.most_common():
        terminalreporter.line(f'{taken:7.1f}  {folder}')


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # so that the objects of extensions are freed at the end


@pytest.fixture(autouse=True, scope='session')
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Put the temporary files of torch and multiprocessing, which interrupted runs leave behind,
    into the folder that pytest removes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('TMPDIR', str(tmp_path_factory.getbasetemp()))
        patch.setattr(tempfile, 'tempdir', None)
        yield


@pytest.fixture(autouse=True, scope='session')
def metafiles_are_read_once() -> Iterator[None]:
    """MMEngine reads all metafiles of a framework (0.5 s) for each ``_base_`` in it; cache them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mmengine.config.utils, 'load', functools.cache(mmengine.config.utils.load))
        yield


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_group_left() -> Iterator[None]:
    """Destroy the process group that a test has joined, since tests on several ranks fork this
    process.
    """
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture(autouse=True)
def no_closed_log() -> Iterator[None]:
    """Remove closed files from MMEngine's loggers, since initializing a model writes to them."""
    yield
    for logger in MMLogger._instance_dict.values():
        logger.handlers[:] = [
            handler for handler in logger.handlers if getattr(handler, 'stream', True) is not None
        ]


@pytest.fixture(autouse=True)
def no_default_scope() -> None:
    """Clear the default scope that another test has set, since MMPretrain's public functions use
    it.
    """
    DefaultScope._instance_dict.clear()


@pytest.fixture
def tiny() -> dict:
    """Arguments of a ViT of width 32 and two blocks, without a CNN, on a grid of 4 x 4 patches."""
    return dict(
        arch=dict(TINY),
        img_size=32,
    )


@pytest.fixture
def tiny_hybrid(tiny: dict) -> dict:
    """Arguments of the same ViT on a ResNet of two stages (stride 8)."""
    arch = dict(tiny['arch'], patch_size=1, resnet=dict(stage_depths=(1, 1), width=32))
    return dict(tiny, arch=arch)


@pytest.fixture
def digits_config(tmp_path) -> Config:
    """The hybrid's recipe for digits, cut to three short epochs."""
    path = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
    cfg = Config(Config.fromfile(path).to_dict(), filename=path, format_python_code=False)
    cfg.merge_from_dict(
        {
            'train_cfg.max_epochs': 3,
            'train_dataloader.dataset.indices': 64,
            'val_dataloader.dataset.indices': 30,
            'test_dataloader.dataset.indices': 30,
            'work_dir': str(tmp_path / 'work'),
            # MMEngine warns of two runs with one name in a process; its default is a time stamp
            # in whole seconds.
            'experiment_name': tmp_path.name,
            'log_level': 'WARNING',
            'custom_hooks.0.pictures': False,  # they take seconds
        }
    )
    return cfg


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Limit each file to 64 KiB, so that larger writes fail as on a full disk."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def forget(monkeypatch):
    """A function that makes a package impossible to import, and unloads vit_plugin.

    So a test imports vit_plugin anew, as where that package is not installed.
    """
    earlier = sys.modules.get('vit_plugin')
    yield functools.partial(_forget, monkeypatch)
    if sys.modules.get('vit_plugin') is earlier:  # the test has not called the function
        return
    for name in [name for name in sys.modules if name.split('.')[0] == 'vit_plugin']:
        del sys.modules[name]  # imported by the test; monkeypatch then restores the earlier ones


def _forget(monkeypatch, missing: str, error: ImportError | None = None) -> None:
    """Unload vit_plugin and a package, whose import then fails, with ``error`` if it is given."""
    for root in vars(mmengine.registry).values():
        if isinstance(root, mmengine.registry.Registry):
            for scope in ('vit_plugin', missing):
                monkeypatch.delitem(root._children, scope, raising=False)
    monkeypatch.setattr(CheckpointLoader, '_schemes', dict(CheckpointLoader._schemes))
    for name in [name for name in sys.modules if name.split('.')[0] in (missing, 'vit_plugin')]:
        monkeypatch.delitem(sys.modules, name)
    if error:
        monkeypatch.setattr(sys, 'meta_path', [Blocker(missing, error), *sys.meta_path])
    else:
        monkeypatch.setitem(sys.modules, missing, None)


class Blocker:
    """An import finder, for ``sys.meta_path``, that raises an error for one package."""

    def __init__(self, package: str, error: ImportError) -> None:
        self.package, self.error = package, error

    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == self.package:
            raise self.error

"""Try every registered class in every place of a checkpoint's config, and watch what it opens.

    python benchmarks hostile_configs [--minutes 5] [--part 1/2] [--only-table]

A checkpoint may come from a stranger. So only the classes in the table of
:mod:`vit_plugin.untrusted` are built from its config. This campaign looks for a class that opens or
runs something and that the table admits.

Each class of the frameworks' registries is put into each of :data:`PLACES` in a small classifier's
config. If the table admits it there, a command uses the checkpoint: it predicts an image that is
also a pickle, or tests or probes. Then each argument of the class is a bait in turn: a pickle under
each suffix, a program, a module, a folder, a URL of a server here, or an expression. The class is
built alone with every bait, and by the whole command with one of them.

Python's audit events are recorded meanwhile. A mark is any of these: a file is opened that the
table does not take as data in this place; something outside of the folder of results is written,
made, renamed or removed; a bait is imported or run; a process or a connection is started; an
attempt does not end. There must be no mark. As a control, the same baits come first from a config
file that a person gives. Such a file is a program, so it must leave marks.

To save time, weights are not initialized, MMEngine does not log, and no checkpoint is written:
the commands get its content. All code that reads the config runs.
"""

import argparse
import gc
import inspect
import logging
import math
import os
import pickle
import random
import signal
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from itertools import cycle, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import mmengine.registry
import numpy as np
import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from mmengine.model import weight_init
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner as MMEngineRunner
from mmengine.visualization import Visualizer
from torch import nn

from vit_plugin.arguments import Signature
from vit_plugin.commands import probe, test
from vit_plugin.commands.entry import build_parser
from vit_plugin.engine.runner import Runner
from vit_plugin.errors import ConfigError
from vit_plugin.from_folder.starting_point import StartingPoint
from vit_plugin.importable import make_importable
from vit_plugin.inference import load, saved_model
from vit_plugin.inference.saved_model import saved_config
from vit_plugin.untrusted.table import PATHS
from vit_plugin.untrusted.table import PLACES as TABLE
from vit_plugin.weights import Checkpoint, saved_settings

FRAMEWORKS = ('mmengine', 'mmpretrain', 'mmdet', 'mmseg', 'vit_plugin')
ROOTS = (
    'MODELS',
    'TASK_UTILS',
    'TRANSFORMS',
    'DATASETS',
    'DATA_SAMPLERS',
    'METRICS',
    'EVALUATOR',
    'VISUALIZERS',
    'VISBACKENDS',
    'HOOKS',
    'LOOPS',
    'RUNNERS',
    'FUNCTIONS',
    'INFERENCERS',
    'WEIGHT_INITIALIZERS',
    'OPTIMIZERS',
    'OPTIM_WRAPPERS',
    'LOG_PROCESSORS',
    'MODEL_WRAPPERS',
    'STRATEGIES',
)
CONFIG: dict[str, Any] = dict(
    default_scope='mmpretrain',
    model=dict(
        type='ImageClassifier',
        data_preprocessor=dict(type='ClsDataPreprocessor', mean=[127.5] * 3, std=[127.5] * 3),
        backbone=dict(
            type='vit_plugin.VisionTransformer',
            img_size=16,
            out_type='avg_featmap',
            arch=dict(
                embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64, patch_size=8
            ),
        ),
        neck=None,
        head=dict(
            type='LinearClsHead', num_classes=2, in_channels=32, loss=dict(type='CrossEntropyLoss')
        ),
    ),
    test_dataloader=dict(
        batch_size=1,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(
            type='CustomDataset',
            data_prefix='images',
            ann_file='',
            pipeline=[
                dict(type='LoadImageFromFile'),
                dict(type='Resize', scale=16),
                dict(type='PackInputs'),
            ],
        ),
    ),
    test_evaluator=dict(type='Accuracy'),
    test_cfg=dict(),
    visualizer=dict(type='UniversalVisualizer'),
    custom_hooks=[],
)
# Places of a class in the config -> the use of the checkpoint: ``predict`` an image, ``test`` or
# ``probe`` by these commands, or ``start`` a training from its weights.
PLACES = {
    **dict.fromkeys(
        (
            'model',
            'model.data_preprocessor',
            'model.backbone',
            'model.backbone.norm_cfg',
            'model.neck',
            'model.head',
            'model.head.loss',
            'model.prototype',
            'test_dataloader.dataset',
            'test_dataloader.dataset.pipeline.0',
            'test_dataloader.dataset.pipeline.1',
            'default_hooks.x',
            'init_cfg',
        ),
        'predict',
    ),
    **dict.fromkeys(('model.backbone.patch_embed', 'model.backbone.pos_embed'), 'start'),
    **dict.fromkeys(
        (
            'visualizer',
            'test_dataloader.dataset.dataset',
            'test_dataloader.sampler',
            'test_dataloader.batch_sampler',
            'test_dataloader.collate_fn',
            'test_evaluator',
            'test_cfg',
            'custom_hooks.0',
            'tta_model',
            'tta_pipeline.0',
            'env_cfg',
            'log_processor',
            'visualizer.vis_backends.0',
            'optim_wrapper',
        ),
        'test',
    ),
    'train_dataloader.dataset': 'probe',
}
# Types that are in no registry: MMEngine imports a name with dots.
PATH_NAMES = (
    'os.system',
    'builtins.exec',
    'runpy.run_path',
    'pickle.load',
    'torch.load',
    'torch.hub.load',
    'local.Code',
    'mmengine.load',
    'mmengine.fileio.load',
    'mmengine.Config.fromfile',
    'mmengine.config.Config.fromfile',
    'mmpretrain.ImageRetrievalInferencer',
    'mmpretrain.ImageClassificationInferencer',
    'mmpretrain.get_model',
    'mmpretrain.apis.ImageRetrievalInferencer',
    'mmdet.apis.DetInferencer',
    'mmseg.apis.MMSegInferencer',
)


# Arguments by which some class opens a file or an address.
OPENING_ARGUMENTS = (
    'ann_file',
    'backend_args',
    'checkpoint',
    'classes',
    'collect_dir',
    'csv_dir',
    'file_path',
    'hierarchy_file',
    'proposal_file',
    'resize_type',
    'dtype',
    'data_prefix',
    'data_root',
    'class_weight',
    'code_init_path',
    'init_cfg',
    'load_from',
    'margins',
    'model_name',
    'pretrained',
    'prototype',
    'save_dir',
    'teacher_config',
    'tokenizer_path',
    'vis_backends',
)
REFUSED, BUILT = 'refused by the table', 'built and used'  # outcomes of an attempt
MAX_SECONDS = 30.0  # of processor time for an attempt


class Endless(BaseException):
    """An attempt has not ended. No ``except Exception`` catches it."""


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple:
        return Path.touch, (self.mark,)


# Audit events that change files. A run may change those in its own folder.
WRITES = {
    'os.mkdir',
    'os.remove',
    'os.rename',
    'os.rmdir',
    'os.link',
    'os.symlink',
    'os.truncate',
    'os.chmod',
    'shutil.rmtree',
    'shutil.move',
    'shutil.copyfile',
}
# Events with a source and a target, which is written.
PAIRS = {'os.rename', 'os.link', 'os.symlink', 'shutil.move', 'shutil.copyfile'}
# Audit events that start a process or a connection.
RUNS = {'os.system', 'os.exec', 'os.posix_spawn', 'subprocess.Popen', 'socket.connect'}
SUFFIXES = ['']
SUFFIXES += [f'.{name}' for name in ('pkl', 'pth', 'npy', 'npz', 'txt', 'json', 'csv', 'png')]
SUFFIXES += ['.xml', '.mat', '.bin', '.yaml']


class Baits:
    """Files and addresses that leave a mark when they are used.

    Attributes:
        mark: the file that a bait makes if it is run.
        watched: the folder of the baits, the working directory of the campaign.
        seen: the audit events that are marks, with their number.
        requests: the paths that were requested from the server.
        allowed: beginnings of the paths that may be written.
        image: an image that is also a pickle.
        values: the baits, as values of arguments, by description.
    """

    def __init__(self, folder: Path) -> None:
        self.mark, self.watched, self.seen = folder / 'mark', folder / 'baits', Counter[str]()
        self.allowed, self.listening = (str(folder / 'own'), '/dev/'), False
        self.requests: list[str] = []
        self.trap = pickle.dumps(Trap(self.mark), protocol=2)
        program = f'from pathlib import Path\nPath({str(self.mark)!r}).touch()\n'
        yaml = f'!!python/object/apply:os.system ["touch {self.mark}"]\n'
        contents = {f'x{suffix}': self.trap for suffix in SUFFIXES} | {
            'x.py': program.encode(),
            'x.yml': yaml.encode(),
            'local.py': program.encode(),
        }
        self.watched.mkdir()
        (folder / 'own').mkdir()
        tempfile.tempdir = str(folder / 'own')
        sys.path.insert(0, str(self.watched))
        for name, content in contents.items():
            (self.watched / name).write_bytes(content)
        (folder / 'images' / 'a').mkdir(parents=True)
        self.image = folder / 'images' / 'a' / 'both.bmp'
        self.image.write_bytes(picture_and_pickle(self.trap))
        server = HTTPServer(('127.0.0.1', 0), self._handler())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.address = f'http://127.0.0.1:{server.server_port}/x.pkl'
        self.values: dict[str, Any] = {
            **{name: name for name in contents},
            **{f'/{name}': str(self.watched / name) for name in contents},
            'module': 'local',
            'folder': str(self.watched),
            'new folder': str(self.watched / 'new'),
            'above': '../baits/x.txt',
            'bytes': str(self.watched / 'x.txt').encode(),
            'number': 0,
            'true': True,
            'URL': self.address,
            'file URL': f'file://{self.watched}/x.pkl',
            'variable': '{{$HOME}}/x.pkl',
            'expression': f'__import__("pathlib").Path({str(self.mark)!r}).touch()',
            'data set': dict(type='BaseDataset', ann_file=self.address),
            'code': dict(type='local.Code'),
            'call': dict(type='os.system', command=f'touch {self.mark}'),
            'pretrained': dict(type='Pretrained', checkpoint=self.address),
            'loss': dict(type='mmseg.OhemCrossEntropy', class_weight='x.pkl'),
        }
        sys.addaudithook(self._listen)

    def _handler(baits: 'Baits') -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                baits.requests.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(baits.trap)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def _listen(self, event: str, args: tuple) -> None:
        if not self.listening:
            return
        if event == 'open' and isinstance(args[0], (str, bytes)):
            path = os.path.abspath(os.fsdecode(args[0]))
            writes = bool((args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            if writes and not path.startswith(self.allowed) and '__pycache__' not in path:
                self.seen[f'write {path}'] += 1
            elif path.startswith(str(self.watched)):
                self.seen[f'open {Path(path).name}'] += 1
        elif event == 'open' and isinstance(args[0], int) and args[0] <= 2:
            self.seen[f'open {args[0]}'] += 1
        elif event in WRITES:
            paths = args[: 2 if event in PAIRS else 1]
            inside = [os.path.abspath(os.fsdecode(path)).startswith(self.allowed) for path in paths]
            if not all(inside):
                self.seen[f'{event} {paths[inside.index(False)]}'] += 1
        elif event in RUNS or (event == 'import' and args[0] in ('local', 'x')):
            self.seen[f'{event} {args[1] if event == "socket.connect" else args[0]}'] += 1

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Record audit events."""
        self.listening = True
        try:
            yield
        finally:
            self.listening = False

    def marks(self, is_data: bool) -> list[str]:
        """The marks since the last call.

        Args:
            is_data: whether the bait may be opened as data; then reads are no marks.
        """
        found = (
            ['ran'] * self.mark.exists()
            + self.requests
            + [event for event in self.seen if not (is_data and event.startswith('open '))]
        )
        self.mark.unlink(missing_ok=True)
        self.requests.clear()
        self.seen.clear()
        return found


def picture_and_pickle(trap: bytes) -> bytes:
    """A BMP of 32 x 32 pixels that is also a pickle.

    A BMP begins with ``BM``. In a pickle, ``B`` is the opcode of bytes, and the next four bytes are
    their number: ``M`` (77) and three zeros. So the pickle skips the header as 77 bytes, and the
    trap comes after them.
    """
    header = (
        b'BM'
        + struct.pack('<IHHI', 0, 0, 0, 54)
        + struct.pack('<IiiHHIIiiII', 40, 32, 32, 1, 24, *[0] * 6)
    )
    return (header + bytes(5 + 77 - len(header)) + trap).ljust(54 + 3 * 32 * 32, b'\0')


def registered_classes() -> dict[str, Any]:
    """Every registered class and function, by its name with the scope of its registry."""

    def below(registry: Any) -> Iterator[Any]:
        yield registry
        for child in registry.children.values():
            yield from below(child)

    found: dict[str, Any] = {}
    for root in ROOTS:
        for registry in below(getattr(mmengine.registry, root)):
            registry.import_from_location()
            names = [*registry.module_dict, *getattr(registry, 'lazy_modules', ())]
            found |= {f'{registry.scope}.{name}': registry.module_dict.get(name) for name in names}
    return found


def value_at(cfg: Any, place: str) -> Any:
    """The value at a place of a config."""
    for name in place.split('.'):
        cfg = cfg[int(name)] if isinstance(cfg, list) else cfg[name]
    return cfg


def config_with(place: str, part: Any) -> dict[str, Any]:
    """:data:`CONFIG` with a part in a place."""
    cfg: dict[str, Any] = deepcopy(CONFIG)
    inside: Any = cfg
    names = place.split('.')
    for name, following in pairwise(names):
        new: Any = [] if following.isdecimal() else {}
        inside = inside[int(name)] if isinstance(inside, list) else inside.setdefault(name, new)
    if isinstance(inside, list):
        inside[int(names[-1]) : int(names[-1]) + 1] = [part]
    else:
        inside[names[-1]] = part
    if 'train_dataloader' in cfg:  # for a probe
        cfg |= dict(
            train_dataloader={**cfg['test_dataloader'], **cfg['train_dataloader']},
            val_cfg={},
            val_dataloader=cfg['test_dataloader'],
            val_evaluator=cfg['test_evaluator'],
        )
    return cfg


def config_text(cfg: Mapping[str, Any]) -> str:
    """The text of a config in a checkpoint.

    ``Config.pretty_text`` also formats it, which takes longer than the attempt.
    """
    return '\n'.join(f'{name} = {value!r}' for name, value in cfg.items())


@contextmanager
def quiet() -> Iterator[None]:
    with (
        open(os.devnull, 'w') as nothing,
        redirect_stdout(nothing),
        redirect_stderr(nothing),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter('ignore')
        yield


def skip_slow_parts() -> None:
    """Skip the parts that take most of the time and do not read a config."""

    def unchanged(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor

    for name in ('normal_', 'uniform_', 'erfinv_'):
        setattr(torch.Tensor, name, unchanged)
    for name in vars(nn.init):
        if name.endswith('_') and not name.startswith('_'):
            setattr(nn.init, name, unchanged)
    weight_init._no_grad_trunc_normal_ = unchanged
    Config.pretty_text = property(lambda self: '')
    MMEngineRunner.dump_config = Runner.dump_config = lambda self: None
    MMEngineRunner._log_env = Runner._log_env = lambda self, env_cfg: None
    gc.collect = lambda *args: 0


class Campaign:
    """Hostile checkpoints, and their outcomes.

    Args:
        folder: an empty folder for baits and results.
        seconds: time limit of the campaign.
        only_table: whether only the table is asked, and nothing is built.
    """

    def __init__(self, folder: Path, seconds: float = math.inf, only_table: bool = False) -> None:
        skip_slow_parts()

        def interrupt(*args: Any) -> None:
            raise Endless

        signal.signal(signal.SIGPROF, interrupt)
        self.only_table = only_table
        self.ends = time.monotonic() + seconds
        self.baits, self.counts, self.marked = Baits(folder), Counter[str](), []
        os.chdir(self.baits.watched)
        value_at(CONFIG, 'test_dataloader.dataset')['data_prefix'] = str(folder / 'images')
        self.work_dir = str(folder / 'own' / 'work')
        self.names: set[str] = set()
        self.built: set[str] = set()
        self.results: dict[Any, str] = {}
        self.file, self.test, self.probe = folder / 'checkpoint.pth', test, probe
        self.file.touch()
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            self.weights = MODELS.build(deepcopy(CONFIG['model'])).state_dict()
        self.content: dict[str, Any] = {}
        for module in (saved_model, saved_settings):
            module.open_checkpoint = self.open_checkpoint
        # The weights do not fit other models and do not matter here: a model that is built predicts
        # with its initial weights.
        load.load_trained = lambda *args: {}

    def open_checkpoint(self, *args: Any, **kwargs: Any) -> Checkpoint:
        """The checkpoint of the current attempt, in place of one from a file."""
        return Checkpoint('checkpoint.pth', dict(self.content))

    def attempt(
        self, place: str, part: dict[str, Any], use: str, kind: Any = None, argument: str = ''
    ) -> str:
        """Use a checkpoint whose config has this part in this place, and count the outcome.

        Args:
            place, use: see :data:`PLACES`.
            part: the section of the config.
            kind: the class of the part, to build it alone. Default: the command builds everything.
            argument: the argument of the part that has the bait.

        Raises:
            TimeoutError: if the time of the campaign is up.
        """
        if time.monotonic() > self.ends:
            raise TimeoutError
        self.content = dict(
            state_dict=self.weights, meta=dict(cfg=config_text(config_with(place, part)))
        )
        result = REFUSED
        with quiet(), self.baits.listen():
            with suppress(ConfigError):
                # All commands begin with this check.
                cfg = saved_config(self.open_checkpoint(), use)
                admitted = use, kind, repr(cfg)
                # The check drops unused entries, so many configs become the same.
                result = self.results.get(admitted, 'admitted')
            if result == 'admitted' and not self.only_table:
                result = (
                    self._run(use, None)
                    if kind is None
                    else self._outcome(lambda: self._alone(kind, value_at(cfg, place)))
                )
                self.results[admitted] = result
        self.counts['tried'] += 1
        if result == BUILT:
            self.built.add(str(part['type']))
        self.counts[result] += 1
        for mark in self.baits.marks(is_data_in(place, argument)):
            self.marked.append((place, part, use, mark))
            print('MARK', place, part, use, mark, flush=True)
        return result

    def _alone(self, kind: Any, part: Mapping[str, Any]) -> None:
        """Build a class, as a model or a pipeline would, and call it if it is a transform."""
        built = kind(**{name: value for name, value in part.items() if name != 'type'})
        if hasattr(built, 'transform'):
            built(dict(img_path=str(self.baits.image), img=np.zeros((8, 8, 3), np.uint8)))

    def _run(self, use: str, config: str | None) -> str:
        if use == 'predict':
            return self._outcome(
                lambda: load.load(self.file, config, device='cpu')(str(self.baits.image))
            )
        if use == 'start':
            return self._outcome(lambda: StartingPoint('', str(self.file), (0, 0)))
        return self._outcome(lambda: self._main(dict(test=self.test, probe=self.probe)[use]))

    def _outcome(self, function: Callable[[], Any]) -> str:
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        try:
            function()
        except (Exception, SystemExit):
            return 'failed'
        except Endless:
            self.baits.seen['does not end'] += 1
            return 'endless'
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return BUILT

    def _main(self, command: ModuleType) -> None:
        # MMEngine rejects a second instance of the same name.
        for manager in (MessageHub, Visualizer, *Visualizer.__subclasses__()):
            manager._instance_dict.clear()
        command.main(
            build_parser(command).parse_args([str(self.file), '--work-dir', self.work_dir])
        )


def is_data_in(place: str, argument: str) -> bool:
    """True if the table takes an argument in this place as a file or folder of data."""
    kind = dict(dataset='dataset', test_evaluator='metric').get(place.rpartition('.')[2])
    return kind is not None and TABLE[kind].arguments.get(argument) in PATHS


def arguments_of(kind: Any) -> tuple[list[str], dict[str, int]]:
    """The arguments of a class, and an arbitrary value for each required one."""
    names: set[str] = set()
    needed: dict[str, int] = {}
    with suppress(Exception):
        names = set(Signature.of(kind).fields)
        needed = {
            name: 8
            for name, argument in inspect.signature(kind).parameters.items()
            if argument.default is argument.empty
            and argument.kind is argument.POSITIONAL_OR_KEYWORD
        }
    return sorted(names), needed


def count_control_marks(campaign: Campaign) -> int:
    """The number of baits that are run by a config from a person: it should be all three.

    They are a pickle by HTTP, a program, and an image that is a pickle.
    """
    baits = campaign.baits
    loader = dict(type='mmseg.LoadBiomedicalImageFromFile', decode_backend='pickle')
    parts = {
        'model.neck': dict(type='mmengine.load', file=baits.address),
        'model.head': dict(type='mmengine.Config.fromfile', filename=baits.values['x.py']),
        'test_dataloader.dataset.pipeline.0': loader,
    }
    found = 0
    for place, part in parts.items():
        given = Path(campaign.work_dir).with_suffix('.py')
        given.write_text(config_text(config_with(place, part)))
        campaign.content = dict(state_dict=dict(a=torch.zeros(1)))
        with quiet(), baits.listen():
            campaign._run('predict', str(given))
        found += 'ran' in baits.marks(False)
    return found


def try_paths(campaign: Campaign) -> None:
    """Try types that are in no registry, in every place."""
    baits = campaign.baits.values
    for place, use in PLACES.items():
        for name in PATH_NAMES:
            campaign.attempt(
                place,
                dict(
                    type=name,
                    prototype=baits['data set'],
                    image_encoder='resnet18',
                    model=baits['x.py'],
                    filename=baits['x.py'],
                    file=baits['URL'],
                    command=f'touch {campaign.baits.mark}',
                ),
                use,
            )
        for part in (
            dict(type='X', _scope_='local'),
            dict(type=baits['expression']),
            dict(type='local.X'),
        ):
            campaign.attempt(place, part, use)


def try_names(campaign: Campaign, names: Mapping[str, Any]) -> None:
    """Try registered names in every place. In the first that builds one, try baits as arguments."""
    next_baits = cycle(campaign.baits.values.values())
    for name, kind in names.items():
        campaign.names.add(name)
        arguments, needed = arguments_of(kind)
        taken = False
        for place, use in PLACES.items():
            admitted = campaign.attempt(place, dict(type=name), use) != REFUSED
            # A prediction builds no data set: it only takes the names of the classes from it.
            built = admitted and place != 'test_dataloader.dataset'
            if built and not taken and not campaign.only_table:
                for argument in arguments:
                    for bait in campaign.baits.values.values():
                        part = dict(needed, type=name, **{argument: bait})
                        campaign.attempt(place, part, use, kind, argument)
                    part = dict(needed, type=name, **{argument: next(next_baits)})
                    campaign.attempt(place, part, use, argument=argument)
            taken |= built


def try_fields(campaign: Campaign) -> None:
    """Try baits as :data:`OPENING_ARGUMENTS` of the classes that the config has anyway."""
    for argument in OPENING_ARGUMENTS:
        for place in (
            'model',
            'model.backbone',
            'model.head',
            'model.data_preprocessor',
            'visualizer',
            'test_dataloader.dataset.pipeline.0',
            'test_dataloader.dataset',
            'test_evaluator',
        ):
            for bait in campaign.baits.values.values():
                part = value_at(CONFIG, place)
                for use in ('predict', 'test'):
                    campaign.attempt(place, {**part, argument: bait}, use, argument=argument)


def run(campaign: Campaign, number: int = 1, count: int = 1) -> Campaign:
    """Try everything, or as much as the time allows: the names are in random order.

    Args:
        campaign: the campaign.
        number: the number of this process, from 1.
        count: the number of processes that share the names. The first also tries types that are in
            no registry, the last :data:`OPENING_ARGUMENTS`.
    """
    taken = count_control_marks(campaign)
    assert taken == 3, f'only {taken} of 3 baits leave a mark when a person gives the config'
    names = list(registered_classes().items())
    random.Random(0).shuffle(names)
    with suppress(TimeoutError):
        if number == 1:
            try_paths(campaign)
        try_names(campaign, dict(names[number - 1 :: count]))
        if number == count:
            try_fields(campaign)
    return campaign


def main() -> None:
    parser = argparse.ArgumentParser(description='Try every registered class in a hostile config.')
    parser.add_argument('--minutes', type=float, default=math.inf, help='time limit; default: none')
    parser.add_argument(
        '--only-table', action='store_true', help='build nothing, only ask the table for each name'
    )
    parser.add_argument(
        '--part', default='1/1', help='the share of this process, such as 1/2 for the first of two'
    )
    args = parser.parse_args()
    number, count = map(int, args.part.split('/'))
    import vit_plugin.detection  # noqa: F401  must be imported before MMDetection's detectors

    make_importable()
    for framework in FRAMEWORKS:
        import_module(f'{framework}.registry')
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder).resolve(), 60 * args.minutes, args.only_table)
        run(campaign, number, count)
        os.chdir('/')
    print(
        dict(campaign.counts),
        'marks:',
        len(campaign.marked),
        'registered names:',
        len(campaign.names),
        'built:',
        len(campaign.built),
    )
    assert not campaign.marked


if __name__ == '__main__':
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    main()

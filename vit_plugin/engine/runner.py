"""MMEngine's runner with safer files and more checks."""

import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from functools import cached_property, partial
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import mmengine.runner
from mmengine.device import get_device
from mmengine.dist import get_rank, is_main_process
from mmengine.evaluator import Evaluator
from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapperDict
from mmengine.runner import BaseLoop, EpochBasedTrainLoop
from torch import nn
from torch.utils.data import DataLoader

from vit_plugin.arguments import as_config_error
from vit_plugin.data.image_reader import use_our_image_reader
from vit_plugin.data.seeded import seeded_loader
from vit_plugin.errors import ConfigError, naming
from vit_plugin.files.complete import write_text
from vit_plugin.files.place import HERE
from vit_plugin.files.text import read_text
from vit_plugin.models.classes import check_classes, check_head
from vit_plugin.registry import RUNNERS
from vit_plugin.weights.for_mmengine import reading_safely

from .checkpoints.hook import CheckpointHook
from .checkpoints.hook_states import HookStates
from .checkpoints.newest import has_checkpoints, newest_checkpoint
from .checkpoints.reading import read_for, resumable_only
from .checkpoints.run_settings import settings_of
from .checkpoints.saver import Saver
from .compile import compile_blocks
from .console import (
    LoggedEvaluator,
    print_safely,
    printing_logged,
    quieten,
    summary,
    without_stderr,
)
from .default_hooks import with_default_hooks
from .distributed import dist_settings, from_rank_0, init_distributed, naming_lost_ranks
from .exact.loops import resumable
from .exact.randomness import SeedHook
from .faults.preemption import PreemptionHook
from .faults.unreadable_hook import UnreadableHook
from .float8 import float8_of
from .lora_adapters import Lora, adapt, lora_of
from .optim.schedules import scaled
from .progress import ProgressHook
from .same_ranks import check_same, facts_of_checkpoint, facts_of_config, facts_of_data
from .sharding import Sharding, begin_sharded, check_steps, is_sharded, sharding_of, unwrapped
from .throughput import ThroughputHook
from .work_dir import alone_in


@RUNNERS.register_module()
class Runner(mmengine.runner.Runner):
    """Our tools' runner. For the frameworks' ``train.py``, set ``runner_type='vit_plugin.Runner'``.

    - Reading a checkpoint from any source runs no code in it. Checkpoints are written completely or
      not at all.
    - Resuming uses the newest complete checkpoint, and only one of the same run: what differs is
      named, and applied with ``resume_changed=True``. If there is none yet, the run begins from the
      weights that ``begin_from`` in the config names, as ``load_from`` does.
    - ``schedule_length`` in a config is the length of its ``param_scheduler``, in the run's epochs
      or iterations. With another ``max_epochs`` or ``max_iters``, the schedule is scaled.
    - Before the first step, the number of classes of the data is compared with the head.
    - A run that is resumed, inside an epoch too, ends bit-identical to one that was not
      interrupted: random numbers are functions of the position, see :mod:`vit_plugin.data.seeded`
      and :class:`~vit_plugin.engine.SeedHook`.
    - ``lora=dict(...)`` trains adapters in place of the backbone, see
      :class:`~vit_plugin.engine.lora_adapters.Lora`.
    - ``sharding=dict(...)`` shards the model over the processes, see
      :class:`~vit_plugin.engine.sharding.Sharding`.
    - An image that cannot be read ends no training, validation or test, see
      :class:`~vit_plugin.engine.UnreadableHook`.
    - A loss that is not finite ends the run, see :class:`~vit_plugin.engine.RuntimeInfoHook`.
    - SIGTERM and SIGUSR1 save and stop it, see :class:`~vit_plugin.engine.PreemptionHook`.
    - A process that is dead or hangs ends all others, see
      :func:`~vit_plugin.engine.distributed.naming_lost_ranks`.
    - ``compile=dict(blocks=True)`` compiles block by block, see :mod:`vit_plugin.engine.compile`.
      Other entries are arguments of ``torch.compile``.
    - Several processes work on a CPU too. They must have the same config and data, see
      :func:`~vit_plugin.engine.same_ranks.check_same`.
    - ``verbose=False`` leaves the config, the environment and the like to the log file.

    Attributes:
        saver: writes the checkpoints.
        unreadable: the hook that knows what could not be read.
        base_seed: the seed of the run, the same in all processes.
        resuming: whether a checkpoint is being read to resume from, and not for its weights alone.
        checked_checkpoint: the checkpoint that was found complete.
        data_facts: what is known of the data to train on, see
            :func:`~vit_plugin.engine.same_ranks.facts_of_data`.
        hook_states: takes and restores the state of the hooks.
        sharding: how the model is sharded; None if it is not.
        lora: the adapters that learn in place of the backbone; None if there are none.
    """

    optim_wrapper: Any
    param_schedulers: Any
    _train_dataloader: Any
    _load_from: str | None
    _resume: bool

    resuming = False
    checked_checkpoint: str | None = None
    sharding: Sharding | None = None
    lora: Lora | None = None
    data_facts: Mapping[str, str] = {}
    _compiled = False
    _resumed_at: int | None = None

    def setup_env(self, env_cfg: dict) -> None:
        if self.distributed:
            env_cfg = {**env_cfg, 'dist_cfg': dist_settings(env_cfg)}
            init_distributed(self.launcher, env_cfg)
            if get_device() == 'cpu' and self.cfg.get('sharding') is None:
                wrapper = dict(
                    type='MMDistributedDataParallel',
                    broadcast_buffers=False,
                    find_unused_parameters=self.cfg.get('find_unused_parameters', False),
                )
                self.cfg.model_wrapper_cfg = {
                    **(self.cfg.get('model_wrapper_cfg') or wrapper),
                    'device_ids': None,
                }
        super().setup_env(env_cfg)
        check_same(facts_of_config(self.cfg.to_dict()))

    def build_logger(self, *args: Any, **kwargs: Any) -> MMLogger:
        logger = super().build_logger(*args, **kwargs)
        print_safely(logger)
        if not self.cfg.get('verbose', True):
            quieten(logger)
        return logger

    def _log_env(self, env_cfg: dict) -> None:
        with without_stderr():
            super()._log_env(env_cfg)

    def dump_config(self) -> None:
        """Wait until the work directory is this run's, see :meth:`train`."""

    def _dump_config(self) -> None:
        """Write the config of a training, but leave one that was in the work directory unchanged.

        ``vis_data/config.py`` is complete.
        """
        file = self.cfg.filename
        path = Path(self.work_dir, Path(file or f'{self.timestamp}.py').name)
        if file and Path(file).resolve() == path.resolve():
            return
        super().dump_config()
        if is_main_process() and path.suffix == '.py':  # it moves with its folder
            write_text(
                path, re.sub(r'(?m)^work_dir *=.*$', f"work_dir = '{HERE}'", read_text(path))
            )

    def train(self) -> nn.Module:
        preemption = next((hook for hook in self.hooks if isinstance(hook, PreemptionHook)), None)
        progress = next((hook for hook in self.hooks if isinstance(hook, ProgressHook)), None)
        with (
            reading_safely(),
            alone_in(self.work_dir),
            preemption.listening(self) if preemption else nullcontext(),
            closing(progress) if progress else nullcontext(),
            self.saver.ending(),
        ):
            self._dump_config()
            begin_sharded(self, to_train=True)
            with naming_lost_ranks(self):
                trained = super().train()
        if self._resumed_at == self.iter:
            self.logger.info(
                f'Nothing was left to train: the run had ended at epoch {self.epoch} of '
                f'{self.max_epochs}, iteration {self.iter}.'
                if isinstance(self.train_loop, EpochBasedTrainLoop)
                else f'Nothing was left to train: the run had ended at iteration {self.iter} of '
                f'{self.max_iters}.'
            )
        return trained

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:
        super().call_hook(fn_name, **kwargs)
        if fn_name == 'before_train':
            self.hook_states.begin()

    def _maybe_compile(self, target: str) -> None:
        settings = self.cfg.get('compile')
        if not isinstance(settings, Mapping) or 'blocks' not in settings:
            super()._maybe_compile(target)
        elif settings['blocks'] and not self._compiled:
            self._compiled = True
            number = compile_blocks(
                self.model, **{name: value for name, value in settings.items() if name != 'blocks'}
            )
            self.logger.info(f'{number} blocks are compiled at their first forward.')

    def build_optim_wrapper(self, optim_wrapper: Any) -> Any:
        built = super().build_optim_wrapper(optim_wrapper)
        if isinstance(built, OptimWrapperDict):
            raise ConfigError(
                'optim_wrapper: vit_plugin.Runner trains with one optimizer, and the constructor '
                f"made {len(built)}; take runner_type='Runner'."
            )
        if is_sharded(unwrapped(self.model)):
            check_steps(built.optimizer)
        return built

    def val(self) -> dict:
        return self._evaluate(super().val)

    def test(self) -> dict:
        return self._evaluate(super().test)

    def _evaluate(self, run: Callable[[], dict]) -> dict:
        with reading_safely():
            begin_sharded(self, to_train=False)
            with naming_lost_ranks(self):
                return run()

    def wrap_model(self, model_wrapper_cfg: dict | None, model: nn.Module) -> nn.Module:
        """Add adapters to the model, then wrap it in DDP. Sharding waits until the run begins."""
        if self.cfg.get('lora') is not None:
            self.lora = lora_of(self.cfg)
            adapt(self, model, self.lora)
        if self.cfg.get('float8') is not None:
            self.logger.info(f'{float8_of(self.cfg).convert(model)} layers compute in float8.')
        if self.cfg.get('sharding') is None:
            return super().wrap_model(model_wrapper_cfg, model)
        self.sharding = sharding_of(self.cfg)
        return model

    def _init_model_weights(self) -> None:
        if self.sharding is None and self.lora is None:  # otherwise it was done before
            super()._init_model_weights()

    def register_default_hooks(self, hooks: dict | None = None) -> None:
        self.saver, self.hook_states = Saver(self), HookStates(self)
        super().register_default_hooks(with_default_hooks(hooks))
        self.unreadable = UnreadableHook(**(self.cfg.get('unreadable') or {}))
        self.register_hook(self.unreadable)
        self.register_hook(SeedHook())
        self.register_hook(ThroughputHook())

    def set_randomness(
        self, seed: int | None, diff_rank_seed: bool = False, deterministic: bool = False
    ) -> None:
        super().set_randomness(seed, diff_rank_seed, deterministic)
        self.base_seed = self.seed - get_rank() * diff_rank_seed  # the same in all processes

    def build_evaluator(self, evaluator: Any) -> Evaluator:
        built = super().build_evaluator(evaluator)
        return LoggedEvaluator(built.metrics) if type(built) is Evaluator else built

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        loop = resumable(loop) if isinstance(loop, dict) else loop
        return self._build_loop(super().build_train_loop, loop, 'train')

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        return self._build_loop(super().build_val_loop, loop, 'val')

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        return self._build_loop(super().build_test_loop, loop, 'test')

    def _build_loop(self, build: Callable, loop: BaseLoop | dict, part: str) -> BaseLoop:
        """Build a loop whose samples are functions of their position and may be unreadable."""
        name = f'_{part}_dataloader'
        given = getattr(self, name)
        if isinstance(loop, dict) and isinstance(given, dict):
            listed = self.unreadable.list_of(self, part)
            setattr(self, name, seeded_loader(given, self.base_seed, listed))
        with printing_logged(self.logger):
            built = build(loop)
        setattr(self, name, given)
        check_head(self.model)
        dataset = built.dataloader.dataset
        facts = facts_of_data(dataset, f'{part}_dataloader')
        check_same(facts)
        if part == 'train':
            self.data_facts = facts
        kind = type(getattr(dataset, 'unseeded', dataset)).__name__
        check_classes(self.model, getattr(dataset, 'metainfo', None), f'the data set, a {kind}')
        return built

    @staticmethod
    def build_dataloader(
        dataloader: DataLoader | dict, seed: int | None = None, diff_rank_seed: bool = False
    ) -> DataLoader:
        """Build a data loader with our image reader and any number of workers.

        The temporary folder of their sockets is made here, since a worker that a signal ends does
        not remove its own.
        """
        get_temp_dir()
        # More workers than cores are a recipe on a small machine, and right where they wait for a
        # disk.
        warnings.filterwarnings('ignore', 'This DataLoader will create .* worker processes')
        return mmengine.runner.Runner.build_dataloader(
            use_our_image_reader(dataloader), seed, diff_rank_seed
        )

    def build_param_scheduler(self, scheduler: Any) -> Any:
        made_for = self.cfg.get('schedule_length')
        by_epoch = isinstance(self.train_loop, EpochBasedTrainLoop)
        length = self.max_epochs if by_epoch else self.max_iters
        if made_for:
            if made_for != length:
                self.logger.info(
                    f'The schedules, made for {made_for} '
                    f'{"epochs" if by_epoch else "iterations"}, are scaled to {length}.'
                )
            scheduler = scaled(scheduler, length, made_for, by_epoch, len(self.train_dataloader))
        if not isinstance(scheduler, (list, tuple)):
            return super().build_param_scheduler(scheduler)
        built = []
        for i, one in enumerate(scheduler):
            # MMEngine names neither.
            with as_config_error(f'param_scheduler.{i}, {one},', (ValueError,)):
                built += super().build_param_scheduler(one)
        return built

    def load_or_resume(self) -> None:
        if is_sharded(unwrapped(self.model)):
            # Made here, in all processes, because a hook may save in some alone.
            _ = self.saver.group
        if self._resume and self._load_from is None and not self._has_loaded:
            saving = next((hook for hook in self.hooks if isinstance(hook, CheckpointHook)), None)
            folder = saving.folder_of(self.work_dir) if saving else self.work_dir
            self._load_from = self.checked_checkpoint = from_rank_0(
                partial(newest_checkpoint, self.work_dir, folder)
            )
            if self._load_from is None:
                self._resume = False
                self._load_from = None if self.lora else self.cfg.get('begin_from')
                self.logger.info(
                    f'There is no checkpoint in {self.work_dir} yet: the run begins anew.'
                )
        if self._load_from and not self._has_loaded:
            check_same(
                facts_of_checkpoint(self._load_from),
                'put the same file or folder at this path for all ranks, such as on a shared disk',
            )
        super().load_or_resume()
        if self._train_loop is not None and not isinstance(self._train_loop, dict):
            self.logger.info(f'Training:\n{summary(self)}')
            if not self._resume and has_checkpoints(self.work_dir):
                self.logger.warning(
                    f'{self.work_dir} has checkpoints of an earlier run. This one replaces those '
                    'of the same names, and until its first one is saved, --resume continues that '
                    'run; to keep it, give another --work-dir.'
                )

    def load_checkpoint(
        self, filename: str, map_location: str | Callable = 'cpu', *args: Any, **kwargs: Any
    ) -> Any:
        with naming(filename), reading_safely(partial(read_for, self)):
            return super().load_checkpoint(filename, map_location, *args, **kwargs)

    def resume(
        self,
        filename: str,
        resume_optimizer: bool = True,
        resume_param_scheduler: bool = True,
        map_location: str | Callable = 'cpu',
    ) -> None:
        self.resuming, self.optim_wrapper = True, self.build_optim_wrapper(self.optim_wrapper)
        if self.param_schedulers:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
        try:
            with resumable_only(self, filename):
                super().resume(filename, resume_optimizer, resume_param_scheduler, map_location)
        finally:
            self.resuming = False
        self._resumed_at = self.iter

    def save_checkpoint(
        self,
        out_dir: str,
        filename: str,
        file_client_args: dict | None = None,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        meta: dict | None = None,
        by_epoch: bool = True,
        backend_args: dict | None = None,
    ) -> None:
        """Save the run's state in a file, see :meth:`.checkpoints.saver.Saver.save`.

        See also MMEngine's method.
        """
        self.saver.save(
            out_dir,
            filename,
            remote=dict(file_client_args=file_client_args, backend_args=backend_args),
            save_optimizer=save_optimizer,
            save_param_scheduler=save_param_scheduler,
            meta=meta,
            by_epoch=by_epoch,
        )

    @cached_property
    def config_text(self) -> str:
        """The config as text, formatted once, since that takes longer than copying the state."""
        return self.cfg.pretty_text

    @cached_property
    def settings(self) -> dict[str, str]:
        """What of the config determines the run, see :mod:`.checkpoints.run_settings`."""
        return settings_of(self.cfg)

"""Build the runner's components: model, data loaders, loops, optimizer and schedules."""

import warnings
from collections.abc import Callable, Mapping
from multiprocessing.util import get_temp_dir
from typing import Any, TypeVar

import mmengine.runner
from mmengine.device import get_device
from mmengine.dist import get_rank, get_world_size
from mmengine.evaluator import Evaluator
from mmengine.hooks import Hook
from mmengine.logging import MMLogger
from mmengine.optim import OptimWrapperDict
from mmengine.runner import BaseLoop, EpochBasedTrainLoop, LogProcessor
from torch import nn
from torch.utils.data import DataLoader

from anyfolder.wording import counted
from vit_plugin.arguments import as_config_error
from vit_plugin.data.image_reader import use_our_image_reader
from vit_plugin.data.positioned import find_positioned_sampler, seeded_loader
from vit_plugin.errors import ConfigError
from vit_plugin.models.classes import check_classes, check_head

from .compile import compile_blocks
from .console import LoggedEvaluator, PerCentLogProcessor, redirect_prints_to
from .default_hooks import with_default_hooks
from .distributed import dist_settings, init_distributed
from .exact.loops import use_resumable_loop
from .exact.randomness import SeedHook
from .faults.unreadable_hook import UnreadableHook
from .loggers import make_printable, quieten
from .lora_adapters import Lora, initialize_with_adapters
from .model_settings import read_model_setting
from .optim.schedules import scale_schedules
from .same_ranks import check_same, collect_config_facts, collect_content_facts, collect_data_facts
from .sharding import Sharding, check_sharded_step, is_sharded, without_ddp
from .throughput import ThroughputHook

# MMEngine's log processor, as a config may name it.
PLAIN_LOG_PROCESSORS = ('LogProcessor', 'mmengine.LogProcessor', LogProcessor)
HookType = TypeVar('HookType', bound=Hook)


class BuildingRunner(mmengine.runner.Runner):
    """MMEngine's runner with our components, see :class:`vit_plugin.Runner`.

    Attributes:
        unreadable: the hook that counts unreadable samples.
        base_seed: the seed of the run, the same in all processes.
        data_facts: facts about the training data, see
            :func:`~vit_plugin.engine.same_ranks.collect_data_facts`.
        sharding: how the model is sharded; None if it is not.
        lora: the adapters that are trained instead of the backbone's weights; None without them.
    """

    optim_wrapper: Any
    param_schedulers: Any
    _train_dataloader: Any

    sharding: Sharding | None = None
    lora: Lora | None = None
    data_facts: Mapping[str, str] = {}
    _compiled = False  # whether the blocks are compiled, which a second `train` must not repeat
    _has_begun_from = False  # whether the weights of `begin_from` are loaded

    def find_hook(self, hook_class: type[HookType]) -> HookType | None:
        """The first hook of a class, or None."""
        return next((hook for hook in self.hooks if isinstance(hook, hook_class)), None)

    def setup_env(self, env_cfg: dict) -> None:
        """Set up the process group, on a CPU too, and compare the config between ranks."""
        if self.distributed:
            env_cfg = {**env_cfg, 'dist_cfg': dist_settings(env_cfg)}
            init_distributed(self.launcher, env_cfg)
            if get_device() == 'cpu' and self.cfg.get('sharding') is None:
                # MMEngine would give DDP a device id, which it rejects on a CPU.
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
        check_same(collect_config_facts(self.cfg.to_dict()))

    def wrap_model(self, model_wrapper_cfg: dict | None, model: nn.Module) -> nn.Module:
        """Add adapters to the model, then wrap it in DDP. Sharding waits until the run begins."""
        if lora := read_model_setting(self.cfg, 'lora'):
            self.lora = lora
            self._has_begun_from = initialize_with_adapters(self, model, lora)
        self.sharding = read_model_setting(self.cfg, 'sharding')
        return super().wrap_model(model_wrapper_cfg, model) if self.sharding is None else model

    def _init_model_weights(self) -> None:
        # Otherwise `begin_sharded` or `initialize_with_adapters` has done so, if necessary.
        if self.sharding is None and self.lora is None:
            super()._init_model_weights()

    def register_default_hooks(self, hooks: dict | None = None) -> None:
        """Register the default hooks, and those that a config cannot leave out."""
        super().register_default_hooks(with_default_hooks(hooks))
        self.unreadable = UnreadableHook(**(self.cfg.get('unreadable') or {}))
        self.register_hook(self.unreadable)
        self.register_hook(SeedHook())
        self.register_hook(ThroughputHook())

    def set_randomness(
        self, seed: int | None, diff_rank_seed: bool = False, deterministic: bool = False
    ) -> None:
        super().set_randomness(seed, diff_rank_seed, deterministic)
        # MMEngine adds the rank to the seed.
        self.base_seed = self.seed - get_rank() if diff_rank_seed else self.seed

    def build_logger(self, *args: Any, **kwargs: Any) -> MMLogger:
        logger = super().build_logger(*args, **kwargs)
        make_printable(logger)
        if not self.cfg.get('verbose', True):
            quieten(logger)
        return logger

    def _maybe_compile(self, target: str) -> None:
        """Compile the blocks instead of the method ``target`` if ``compile.blocks`` is set."""
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
        """Build the wrapper, and reject optimizers that cannot train this model."""
        built = super().build_optim_wrapper(optim_wrapper)
        if isinstance(built, OptimWrapperDict):
            raise ConfigError(
                'optim_wrapper: vit_plugin.Runner trains with one optimizer, but the constructor '
                f"made {len(built)}; give runner_type='Runner'."
            )
        if is_sharded(without_ddp(self.model)):
            check_sharded_step(built.optimizer)
        return built

    def build_param_scheduler(self, scheduler: Any) -> Any:
        """Build the schedules, scaled from ``schedule_length`` to the length of the run."""
        schedule_length = self.cfg.get('schedule_length')
        by_epoch = isinstance(self.train_loop, EpochBasedTrainLoop)
        length = self.max_epochs if by_epoch else self.max_iters
        if schedule_length:
            if schedule_length != length:
                self.logger.info(
                    f'The schedules, made for {schedule_length} '
                    f'{"epochs" if by_epoch else "iterations"}, are scaled to {length}.'
                )
            scheduler = scale_schedules(
                scheduler, length, schedule_length, by_epoch, len(self.train_dataloader)
            )
        # MMEngine's own error has neither the number nor the settings.
        kinds = AssertionError, ValueError
        if not isinstance(scheduler, (list, tuple)):
            with as_config_error(f'param_scheduler, {scheduler},', kinds):
                return super().build_param_scheduler(scheduler)
        built = []
        for i, settings in enumerate(scheduler):
            with as_config_error(f'param_scheduler.{i}, {settings},', kinds):
                built += super().build_param_scheduler(settings)
        return built

    @staticmethod
    def build_dataloader(
        dataloader: DataLoader | dict, seed: int | None = None, diff_rank_seed: bool = False
    ) -> DataLoader:
        """Build a data loader with our image reader and any number of workers.

        The temporary folder for the workers' sockets is created here, since a worker killed by a
        signal does not remove its own.
        """
        get_temp_dir()
        # A recipe may have more workers than a small machine has cores, and many workers help with
        # a slow disk, so torch's warning is silenced.
        warnings.filterwarnings('ignore', 'This DataLoader will create .* worker processes')
        return mmengine.runner.Runner.build_dataloader(
            use_our_image_reader(dataloader), seed, diff_rank_seed
        )

    def build_evaluator(self, evaluator: Any) -> Evaluator:
        """Replace MMEngine's evaluator by ours. A subclass of it stays."""
        built = super().build_evaluator(evaluator)
        return LoggedEvaluator(built.metrics) if type(built) is Evaluator else built

    def build_log_processor(self, log_processor: Any) -> LogProcessor:
        """Replace MMEngine's log processor by ours. Another class stays."""
        is_plain = isinstance(log_processor, Mapping) and (
            log_processor.get('type', LogProcessor) in PLAIN_LOG_PROCESSORS
        )
        if is_plain:
            arguments = dict(log_processor)
            for name in ('type', '_scope_'):
                arguments.pop(name, None)
            log_processor = PerCentLogProcessor(**arguments)
        return super().build_log_processor(log_processor)

    def build_train_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        loop = use_resumable_loop(loop) if isinstance(loop, dict) else loop
        built = self._build_loop(super().build_train_loop, loop, 'train')
        check_batches(built.dataloader)
        return built

    def build_val_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        return self._build_loop(super().build_val_loop, loop, 'val')

    def build_test_loop(self, loop: BaseLoop | dict) -> BaseLoop:
        return self._build_loop(super().build_test_loop, loop, 'test')

    def _build_loop(self, build: Callable, loop: BaseLoop | dict, split: str) -> BaseLoop:
        """Build a loop whose loader seeds samples by their position and tolerates unreadable files.

        Then compare its data between ranks, and its classes with the model.

        Args:
            build: MMEngine's method, which takes the loader's config from an attribute.
            loop: the loop or its config.
            split: ``'train'``, ``'val'`` or ``'test'``.
        """
        attribute = f'_{split}_dataloader'
        loader_config = getattr(self, attribute)
        if isinstance(loop, dict) and isinstance(loader_config, dict):
            unreadable_list = self.unreadable.open_list(self, split)
            seeded = seeded_loader(loader_config, self.base_seed, unreadable_list)
            setattr(self, attribute, seeded)
        with redirect_prints_to(self.logger):
            built = build(loop)
        setattr(self, attribute, loader_config)  # only the build needs the seeded one
        check_head(self.model)
        dataset = built.dataloader.dataset
        facts = collect_data_facts(dataset, f'{split}_dataloader')
        check_same(facts)
        if split == 'train':
            self.data_facts = {**facts, **collect_content_facts(dataset, f'{split}_dataloader')}
        dataset_type = type(getattr(dataset, 'unseeded', dataset)).__name__
        check_classes(
            self.model, getattr(dataset, 'metainfo', None), f'the data set, a {dataset_type}'
        )
        return built


def check_batches(loader: DataLoader) -> None:
    """Raise a ``ConfigError`` if a pass over the data of a training has no batch."""
    sampler = find_positioned_sampler(loader)
    is_endless = sampler is not None and sampler.endless
    if is_endless or not hasattr(loader.dataset, '__len__') or len(loader):
        return
    size = f' of {loader.batch_size}' if loader.batch_size else ''
    raise ConfigError(
        f'train_dataloader: its {len(loader.dataset)} samples do not fill a batch{size} in '
        f'{counted(get_world_size(), "process")}; give a smaller batch_size, or drop_last=False.'
    )

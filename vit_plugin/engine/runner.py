"""MMEngine's runner with safer files and more checks.

The class is in three parts: :mod:`.runner_building` builds the components, :mod:`.runner_resuming`
loads, resumes and saves, and this module trains, validates and tests.
"""

import re
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

from mmengine.dist import is_main_process
from mmengine.runner import EpochBasedTrainLoop
from torch import nn

from anyfolder.complete import write_text
from anyfolder.text import read_text
from vit_plugin.files.place import HERE
from vit_plugin.registry import RUNNERS
from vit_plugin.weights.for_mmengine import reading_safely

from .console import without_stderr
from .distributed import naming_lost_ranks
from .faults.preemption import PreemptionHook
from .progress import ProgressHook
from .runner_resuming import ResumableRunner
from .sharding import begin_sharded
from .work_dir import lock_work_dir


@RUNNERS.register_module()
class Runner(ResumableRunner):
    """The runner of this package's commands.

    The frameworks' tools use it if the config has ``runner_type='vit_plugin.Runner'``.

    - Reading a checkpoint from any source runs no code in it. Checkpoints are written completely or
      not at all.
    - Resuming uses the newest complete checkpoint, and only one of the same run: differences end
      the run with a message, or are applied with ``resume_changed=True``. If there is no checkpoint
      yet, the run begins from the weights that ``begin_from`` in the config names.
    - ``schedule_length`` in a config is the length of its ``param_scheduler``, in the run's epochs
      or iterations. With another ``max_epochs`` or ``max_iters``, the schedule is scaled.
    - Before the first step, the number of classes of the data is compared with the head.
    - A run that is resumed, inside an epoch too, ends bit-identical to one that was not
      interrupted: random numbers are functions of the position, see :mod:`vit_plugin.data.seeded`
      and :class:`~vit_plugin.engine.SeedHook`.
    - ``lora=dict(...)`` trains adapters instead of the backbone's weights, see
      :class:`~vit_plugin.engine.lora_adapters.Lora`.
    - ``sharding=dict(...)`` shards the model over the processes, see
      :class:`~vit_plugin.engine.sharding.Sharding`.
    - An image that cannot be read ends no training, validation or test, see
      :class:`~vit_plugin.engine.UnreadableHook`.
    - A loss that is not finite ends the run, see :class:`~vit_plugin.engine.RuntimeInfoHook`.
    - At SIGTERM or SIGUSR1 the run saves and stops, see :class:`~vit_plugin.engine.PreemptionHook`.
    - If a process dies or hangs, all others end, see
      :func:`~vit_plugin.engine.distributed.naming_lost_ranks`.
    - ``compile=dict(blocks=True)`` compiles block by block, see :mod:`vit_plugin.engine.compile`.
      Other entries are arguments of ``torch.compile``.
    - Several processes work on a CPU too. They must have the same config and data, see
      :func:`~vit_plugin.engine.same_ranks.check_same`.
    - ``verbose=False`` leaves the config, the environment and the like to the log file.
    """

    def _log_env(self, env_cfg: dict) -> None:
        with without_stderr():
            super()._log_env(env_cfg)

    def dump_config(self) -> None:
        """Do nothing: :meth:`train` writes the config once it has locked the work directory."""

    def _dump_config(self) -> None:
        """Write the config of a training, unless it was read from this file.

        The complete config is in ``vis_data/config.py``.
        """
        file = self.cfg.filename
        path = Path(self.work_dir, Path(file or f'{self.timestamp}.py').name)
        if file and Path(file).resolve() == path.resolve():
            return
        super().dump_config()
        # The work directory may be moved, so its config names it as the folder that it is in.
        if is_main_process() and path.suffix == '.py':
            write_text(
                path, re.sub(r'(?m)^work_dir *=.*$', f"work_dir = '{HERE}'", read_text(path))
            )

    def train(self) -> nn.Module:
        """Train within the contexts that docs/step.md explains."""
        preemption, progress = self.find_hook(PreemptionHook), self.find_hook(ProgressHook)
        with (
            reading_safely(),
            lock_work_dir(self.work_dir),
            preemption.listening(self) if preemption else nullcontext(),
            closing(progress) if progress else nullcontext(),
            self.saver.waiting_on_error(),
        ):
            self._dump_config()
            if is_main_process() and (concerns := self.provenance.concerns()):
                self.logger.warning(f'Weights without a permissive license: {"; ".join(concerns)}.')
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

    def val(self) -> dict:
        return self._evaluate(super().val)

    def test(self) -> dict:
        return self._evaluate(super().test)

    def _evaluate(self, run: Callable[[], dict]) -> dict:
        with reading_safely():
            begin_sharded(self, to_train=False)
            with naming_lost_ranks(self):
                return run()

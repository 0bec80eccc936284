"""How fast a run is, and how long it will take on a CPU."""

from typing import Any

from mmengine.device import get_device
from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.registry import HOOKS

STEADY, LONG = 20, 3600.  # iterations after which the remaining time is known; seconds of it that need a word


@HOOKS.register_module()
class ThroughputHook(Hook):
    """Logs the images per second of all processes, loading included. Our runner has it by itself.

    On a CPU it warns once when more than an hour remains.
    """

    def before_train(self, runner: Runner) -> None:
        sampler = runner.train_dataloader.batch_sampler
        self._images = getattr(sampler, 'batch_size', 0) * get_world_size()
        self._known_from = runner.iter + STEADY

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        hub = runner.message_hub
        if self._images and 'train/time' in hub.log_scalars:  # of MMEngine's IterTimerHook, which ran before
            hub.update_scalar('train/images/s', self._images / hub.get_scalar('train/time').current())
        left = hub.runtime_info.get('eta', 0.)
        if runner.iter + 1 == self._known_from and left > LONG and get_device() == 'cpu':
            runner.logger.warning(
                f'At this rate, {left / 3600:.1f} hours remain on this CPU. Shorter: fewer epochs, --amp where the CPU '
                'computes in bfloat16, a smaller arch or smaller images, or a GPU.')

"""Log the throughput of a run and the use of its GPU, and warn of long runs on a CPU."""

import re
from typing import Any

import torch
from mmengine.device import get_device
from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.gpus import GPU_TFLOPS, VARIANT_WORDS
from vit_plugin.registry import HOOKS

ESTIMATE_AFTER = 20  # iterations after which the remaining time is estimated
LONG_RUN_SECONDS = 3600.0  # remaining seconds above which a run on a CPU warns


@HOOKS.register_module()
class ThroughputHook(Hook):
    """Logs the speed of a training. Our runner always registers it.

    - ``images/s``: images per second of all processes, loading included, if batches have one size.
    - ``data_wait``: the share of the time in which the step waits for data.
    - ``mfu``: in mixed precision on a GPU of ``GPU_TFLOPS``, the share of its arithmetic that the
      step reaches (model FLOPs utilization, arXiv:2204.02311, Appendix B). The operations are those
      of the first step, as torch counts them; with ``with_cp``, the recomputed ones count too.

    On a CPU it warns once when more than an hour remains.
    """

    def before_train(self, runner: Runner) -> None:
        sampler = runner.train_dataloader.batch_sampler
        size = getattr(sampler, 'batch_size', 0)
        # MMDetection's batch sampler of several data sets has a list of sizes.
        self._images = size * get_world_size() if isinstance(size, int) else 0
        self._estimated_at = runner.iter + ESTIMATE_AFTER
        self._flops = 0
        self._peak = peak_flops() if getattr(runner.optim_wrapper, 'cast_dtype', None) else 0.0
        if self._peak:
            self._count_first_step(runner.model)

    def _count_first_step(self, model: Any) -> None:
        """Let the next ``train_step`` count its operations, and restore the method."""
        # MMEngine sets the compiled train_step on the instance.
        step, is_on_instance = model.train_step, 'train_step' in vars(model)

        def counted(*args: Any, **kwargs: Any) -> Any:
            if is_on_instance:
                model.train_step = step
            else:
                del model.train_step
            with FlopCounterMode(display=False) as counter:
                out = step(*args, **kwargs)
            self._flops = counter.get_total_flops()
            return out

        model.train_step = counted

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        hub = runner.message_hub
        if 'train/time' in hub.log_scalars:  # MMEngine's IterTimerHook ran before
            seconds, waiting = (
                hub.get_scalar(f'train/{name}').current() for name in ('time', 'data_time')
            )
            hub.update_scalar('train/data_wait', waiting / seconds)
            if self._images:
                hub.update_scalar('train/images/s', self._images / seconds)
            if self._flops:
                hub.update_scalar('train/mfu', self._flops / (seconds * self._peak))
        seconds_left = hub.runtime_info.get('eta', 0.0)
        if (
            runner.iter + 1 == self._estimated_at
            and seconds_left > LONG_RUN_SECONDS
            and get_device() == 'cpu'
        ):
            runner.logger.warning(
                f'At this rate, {seconds_left / 3600:.1f} hours remain on this CPU. Shorter: fewer '
                'epochs, --amp where the CPU computes in bfloat16, a smaller arch or smaller '
                'images, or a GPU.'
            )


def peak_flops() -> float:
    """Peak 16-bit operations per second of this GPU, or 0 if it is unknown or there is no GPU."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else ''
    if re.search(rf'\b({"|".join(VARIANT_WORDS)})\b', name):
        return 0.0
    rows = GPU_TFLOPS.items()
    return 1e12 * next((tflops for gpu, tflops in rows if re.search(rf'\b{gpu}\b', name)), 0.0)

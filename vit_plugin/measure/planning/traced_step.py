"""Trace a training step of one of many ranks, on fake tensors in a fake process group.

Fake tensors have shapes and no values, so that a step needs neither memory nor GPUs. Optimizer,
sharding and mixed precision are real.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.structures import BaseDataElement
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.distributed.tensor import DTensor, debug

from vit_plugin.engine.sharding import Sharding, shard
from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.inference.answered_task import is_multi_label
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.layers.recompute import Recompute

from .planned_model import build_classifier, num_blocks, planned_optim_wrapper
from .tracing import Peaks, Work, memory_tracker

# Cost of a step. For each segment, see :class:`~.tracing.Peaks`: the bytes by kind at its peak. For
# the key ('work', ): `flops`, and the bytes `within` and `between` machines, of the whole step.
Cost = dict[tuple, Counter[str]]


@dataclass(frozen=True)
class Layout:
    """Layout of a run on GPUs, one rank on each."""

    gpus: int
    gpus_per_node: int
    group: int = 1  # ranks that share one copy of the model; 1 is DDP
    recompute: Recompute = False  # ``with_cp`` of the backbone
    # 'cuda' plans the optimizers that torch chooses on CUDA.
    device: Literal['cuda', 'cpu'] = 'cuda'


@contextmanager
def pretended_ranks(number: int, rank: int = 0) -> Iterator[None]:
    """Within this context, act as one rank of a process group that sends nothing.

    Raises:
        ConfigError: if this process is in a process group.
    """
    # This import registers the fake backend.
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise ConfigError('A plan needs a process of its own, and this one is in a process group.')
    dist.init_process_group('fake', rank=rank, world_size=number, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
        # torch caches sharding decisions by the shape of the mesh. Those for the pretended rank
        # would be used for a real one.
        if hasattr(debug, '_clear_sharding_prop_cache'):
            debug._clear_sharding_prop_cache()


class TracedStep:
    """A training step of one rank, on fake tensors.

    Args:
        cfg: the config of a classifier.
        layout: how the run is laid out. Its ranks must be pretended, see :func:`pretended_ranks`.
        num_layers: number of blocks; None for those of the config.

    Attributes:
        forwards: number of forwards before an update, more than 1 with gradient accumulation.

    Raises:
        ConfigError: if the model is not a classifier on a supported backbone, see
            :func:`~.planned_model.build_classifier`, or cannot be sharded in this layout.
    """

    def __init__(self, cfg: Config, layout: Layout, num_layers: int | None = None) -> None:
        self.cfg, self.layout = cfg, layout
        with torch.device('meta'):
            self.model = build_classifier(cfg, layout.recompute, num_layers)
        if layout.group > 1:
            options = dict(cfg.get('sharding') or {}, group=layout.group)
            if options.get('cpu_offload'):
                raise ConfigError(
                    'sharding.cpu_offload=True is not planned: leave it out for the plan.'
                )
            shard(self.model, Sharding(**options), device_type='cpu')
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        with self.fake:
            self.model.to_empty(device='cpu').train()
            self.wrapper = build_optim_wrapper(
                self.model, planned_optim_wrapper(cfg, layout.device)
            )
        self.wrapper.defer_grad_norm()  # fake tensors have no values to log
        # The number of iterations only has to be larger than any that is traced.
        self.wrapper.initialize_count_status(self.model, init_counts=0, max_counts=1 << 40)
        self.forwards = getattr(self.wrapper, '_accumulative_counts', 1)
        self.amp_dtype = getattr(self.wrapper, 'cast_dtype', None)
        if layout.device == 'cuda' and self.amp_dtype:  # CUDA's autocast has norms in float32
            for module in self.model.modules():
                if isinstance(module, (nn.LayerNorm, nn.GroupNorm)):
                    module.register_forward_pre_hook(lambda _, args: (args[0].float(), *args[1:]))
        with self.fake, Work(self.fake):
            self._run(self.model, 1)  # creates the optimizer state and DTensor's shape caches

    def recompute(self, recompute: Recompute) -> None:
        """Change the activation checkpointing, without a new model or optimizer."""
        if isinstance(self.model.backbone, WrappedBackbone):
            self.model.backbone.recompute(bool(recompute))
        for module in self.model.modules():
            if hasattr(module, 'with_cp'):
                module.with_cp = recompute
            if hasattr(module, 'set_grad_checkpointing'):  # timm's
                module.set_grad_checkpointing(bool(recompute))

    def cost(self, batch: int) -> Cost:
        """The cost of a step with this many images on the rank.

        Raises:
            ConfigError: if torch's trackers record no memory.
        """
        work = Work(self.fake, self.layout.gpus_per_node)
        memory = memory_tracker(self.model, self.wrapper.optimizer, num_blocks(self.model))
        with self.fake, memory, work:
            model, bucket_bytes = self.model, 0
            if self.layout.group == 1 < self.layout.gpus:
                model, bucket_bytes = self._wrap_in_ddp()
            self._run(model, batch, memory)
        if not memory.peaks:
            raise ConfigError(
                f'The memory trackers of torch {torch.__version__} are not those that planning '
                'knows; install another torch.'
            )
        for parameter in self.model.parameters():
            parameter.grad = None
        ema_bytes = 0
        if any('EMAHook' in str(hook['type']) for hook in self.cfg.get('custom_hooks') or ()):
            ema_bytes = sum(map(_bytes, (*self.model.parameters(), *self.model.buffers())))
        for sizes in memory.peaks.values():  # Counters, whose update() adds
            # The trackers count DDP's buckets as activations.
            sizes.update(activations=-bucket_bytes, gathered=bucket_bytes, ema=ema_bytes)
        return {**memory.peaks, ('work',): Counter(flops=work.flops, **work.traffic)}

    def _run(self, model: nn.Module, batch: int, memory: Peaks | None = None) -> None:
        """Run the forwards, the backwards and the update of one step."""
        backbone = self.model.backbone
        for _ in range(self.forwards):
            if memory:
                memory.reset_mod_stats()  # the trackers expect one forward
            images = torch.empty(batch, backbone.in_channels, *backbone.img_size)
            if is_multi_label(self.model):
                # Such a head stacks a score of each class from every image.
                scores = torch.empty(self.cfg.model.head.num_classes)
                samples = [BaseDataElement(gt_score=scores)] * batch
            else:
                # One sample with all labels, rather than one per image, to save time.
                samples = [BaseDataElement(gt_label=torch.empty(batch, dtype=torch.int64))]
            # Fake tensors are on the CPU, regardless of the device that the wrapper would autocast
            # for.
            with (
                self.wrapper.optim_context(model),
                torch.autocast('cpu', self.amp_dtype, enabled=bool(self.amp_dtype)),
            ):
                losses = model(images, samples, mode='loss')
            loss, _ = self.model.parse_losses(losses)
            del images, losses
            tensors = 'sharded parameters' if self.layout.group > 1 else 'fake tensors'
            class_name = type(self.wrapper.optimizer).__name__
            with rejecting(
                f'optim_wrapper.optimizer: {class_name} does not step {tensors}',
                'leave out fused=True, or plan with AdamW',
                (DataDependentOutputException, NotImplementedError),
            ):
                self.wrapper.update_params(loss)

    def _wrap_in_ddp(self) -> tuple[nn.Module, int]:
        """The model in DDP, and the bytes of its buckets, which copy the gradients."""
        options = {
            key: value
            for key, value in (self.cfg.get('model_wrapper_cfg') or {}).items()
            if key in ('gradient_as_bucket_view', 'bucket_cap_mb')
        }
        model = nn.parallel.DistributedDataParallel(
            self.model, init_sync=False, broadcast_buffers=False, **options
        )
        model.register_comm_hook(None, _all_reduce)
        if options.get('gradient_as_bucket_view'):
            return model, 0
        trained = (parameter for parameter in self.model.parameters() if parameter.requires_grad)
        return model, sum(map(_bytes, trained))


def _bytes(tensor: Tensor) -> int:
    """The size of a tensor on this rank."""
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).nbytes


def _all_reduce(_: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """DDP's communication hook, in Python, so that the trackers see the collective."""
    dist.all_reduce(bucket.buffer())
    done: torch.futures.Future[Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done

"""Take a training step of one of many ranks, without its data, its memory and the other ranks.

The tensors are fake, and the process group only pretends. The optimizer, the sharding and mixed precision are the real
ones.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.distributed.tensor import DTensor, debug

from vit_plugin.engine.explain import first_line
from vit_plugin.engine.sharding import Sharding, shard
from vit_plugin.errors import ConfigError

from .building import build_classifier, norms_in_float32, planned_optim_wrapper
from .tracing import Trace, Work

# What a step costs: (segment, kind) -> bytes at the peak of the segment, and other quantities by name.
Cost = dict[Any, float]

ENDS = 2  # blocks at either end that differ from the others, which torch's prefetching makes more than one


@dataclass(frozen=True)
class Setting:
    """How a run is laid out.

    Attributes:
        gpus: number of ranks.
        gpus_per_node: number of ranks on a machine.
        group: number of ranks that share one copy of the model. 1 is DDP.
        recompute: whether activations are recomputed in the backward (``with_cp``).
        device: ``'cuda'`` plans what torch does on CUDA: foreach optimizers, and allocations in blocks of 512 bytes.
    """
    gpus: int
    gpus_per_node: int
    group: int = 1
    recompute: bool = False
    device: Literal['cuda', 'cpu'] = 'cuda'


@contextmanager
def pretended_ranks(number: int, rank: int = 0) -> Iterator[None]:
    """Be one of the ranks of a process group that sends nothing.

    Raises:
        ConfigError: if this process is in a process group.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore  # registers the backend; torch's only such one
    if dist.is_initialized():
        raise ConfigError('A plan is made in a process of its own, and this one is in a process group.')
    dist.init_process_group('fake', rank=rank, world_size=number, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()
        # torch keeps how operators divide tensors, by the mesh's shape. What it keeps is of the pretended rank.
        getattr(debug, '_clear_sharding_prop_cache', lambda: None)()


class Step:
    """A training step of one rank, on fake tensors.

    Args:
        cfg: the config of a classifier.
        setting: how the run is laid out. Its ranks must be pretended, see :func:`pretended_ranks`.
        num_layers: number of blocks; None for those of the config.

    Raises:
        ConfigError: if the model is not a classifier on our backbone, or cannot be sharded like this.
    """

    def __init__(self, cfg: Config, setting: Setting, num_layers: int | None = None) -> None:
        self.cfg, self.setting = cfg, setting
        with torch.device('meta'):
            self.model = build_classifier(cfg, setting.recompute, num_layers)
        if setting.group > 1:
            options = dict(cfg.get('sharding') or {}, group=setting.group)
            if options.get('cpu_offload'):
                raise ConfigError('sharding.cpu_offload=True is not planned: leave it out for the plan.')
            shard(self.model, Sharding(**options), 'cpu')
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        with self.fake:
            self.model.to_empty(device='cpu').train()
            self.wrapper = build_optim_wrapper(self.model, planned_optim_wrapper(cfg, setting.device))
        self.wrapper.defers_grad_norm = True  # no tensor has a value to be read
        self.wrapper.initialize_count_status(self.model, 0, 1 << 40)
        self.forwards = getattr(self.wrapper, '_accumulative_counts', 1)
        if setting.device == 'cuda' and hasattr(self.wrapper, 'cast_dtype'):
            norms_in_float32(self.model)
        with self.fake, Work(self.fake, 1):
            self._run(self.model, 1)  # makes the optimizer's state, and DTensor's tables of shapes

    def cost(self, batch: int) -> Cost:
        """The cost of a step with this number of images on the rank.

        Returns:
            bytes by (segment, kind), ``'flops'``, and the traffic ``'within'`` and ``'between'`` machines.
        """
        trace = Trace(self.model, self.wrapper.optimizer, self.fake, self.setting.gpus_per_node)
        with trace, _segments(self.model, self.wrapper.optimizer, trace.memory):
            model, buckets = (self.model, 0) if self.setting.group > 1 or self.setting.gpus == 1 else self._replicated()
            self._run(model, batch, trace.memory.reset_mod_stats)  # the trackers expect one forward
        for parameter in self.model.parameters():
            parameter.grad = None
        cost: Cost = {}
        for segment, held in trace.peaks().items():
            held.update(activations=-buckets, gathered=buckets, ema=self._averaged())
            cost.update({('memory', segment, kind): size for kind, size in held.items()})
        return cost | {'flops': trace.work.flops, **trace.work.traffic}

    def _run(self, model: nn.Module, batch: int, tell: Callable[[], None] = lambda: None) -> None:
        backbone = self.model.backbone
        for _ in range(self.forwards):
            tell()
            images = torch.empty(batch, backbone.patch_embed.in_channels, *backbone.img_size, dtype=torch.uint8)
            preprocessor = self.model.data_preprocessor
            with self.wrapper.optim_context(model), _autocast(self.wrapper):
                if getattr(preprocessor, 'batch_augments', None):  # it mixes the labels too
                    data = preprocessor(dict(inputs=images, data_samples=[_sample(1)] * batch), training=True)
                else:  # one sample with all labels, as one after the other would take most of the time
                    data = dict(preprocessor(dict(inputs=images), training=True), data_samples=[_sample(batch)])
                losses = model(**data, mode='loss')
            loss, _ = self.model.parse_losses(losses)
            del data, images, losses
            try:
                self.wrapper.update_params(loss)
            except DataDependentOutputException as error:
                kind = type(self.wrapper.optimizer).__name__
                raise ConfigError(f'optim_wrapper: a step of {kind} depends on values ({error.func}), which a plan '
                                  'does not have; plan with AdamW or SGD.') from error
            except NotImplementedError as error:
                raise ConfigError(f'optim_wrapper.optimizer: {type(self.wrapper.optimizer).__name__} does not step '
                                  f'sharded parameters ({first_line(error)}); leave out fused=True, or sharding.'
                                  ) from error

    def _averaged(self) -> int:
        """Bytes of the averaged weights that a hook of the config keeps."""
        averages = any('EMAHook' in str(hook['type']) for hook in self.cfg.get('custom_hooks') or ())
        return averages * sum(_bytes(tensor) for tensor in (*self.model.parameters(), *self.model.buffers()))

    def _replicated(self) -> tuple[nn.Module, int]:
        """The model in DDP, and the bytes of its buckets, which hold a second copy of the gradients."""
        options = {key: value for key, value in (self.cfg.get('model_wrapper_cfg') or {}).items()
                   if key in ('gradient_as_bucket_view', 'bucket_cap_mb')}
        model = nn.parallel.DistributedDataParallel(self.model, init_sync=False, broadcast_buffers=False, **options)
        model.register_comm_hook(None, _all_reduce)
        buckets = 0 if options.get('gradient_as_bucket_view') else sum(
            _bytes(parameter) for parameter in self.model.parameters() if parameter.requires_grad)
        return model, buckets


def _bytes(tensor: Tensor) -> int:
    return (tensor.to_local() if isinstance(tensor, DTensor) else tensor).nbytes


@contextmanager
def _segments(model: nn.Module, optimizer: torch.optim.Optimizer, memory: Any) -> Iterator[None]:
    """Tell which part of a step is going on: the blocks from either end, forward and backward, and the update."""
    def begin(*segment: Any) -> None:
        memory.segment = segment

    def hook(block: nn.Module, place: int | str) -> tuple[Any, Any]:
        def before(*_: Any) -> None:
            if memory.segment[0] == 'forward':  # in the backward it is recomputed
                begin('forward', place)

        def after(_: nn.Module, inputs: tuple, out: Tensor) -> None:
            if memory.segment[0] == 'forward' and out.requires_grad:
                out.register_hook(lambda _: begin('backward', place))

        return block.register_forward_pre_hook(before), block.register_forward_hook(after)

    blocks = list(model.backbone.blocks)
    handles = [model.register_forward_pre_hook(lambda *_: begin('forward', 'stem')),
               optimizer.register_step_pre_hook(lambda *_: begin('update'))]
    for i, block in enumerate(blocks):
        place = i if i < ENDS else i - len(blocks) if i >= len(blocks) - ENDS else 'middle'
        handles.extend(hook(block, place))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _sample(labels: int) -> Any:
    from mmpretrain.structures import DataSample
    return DataSample().set_gt_label(torch.empty(labels, dtype=torch.int64))


@contextmanager
def _autocast(wrapper: Any) -> Iterator[None]:
    """Autocast of fake tensors, which are on the CPU whatever device this machine has."""
    dtype = getattr(wrapper, 'cast_dtype', None)
    with torch.autocast('cpu', dtype, enabled=dtype is not None):
        yield


def _all_reduce(_: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    dist.all_reduce(bucket.buffer())
    done: torch.futures.Future[Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done

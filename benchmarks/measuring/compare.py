"""Compare the speed and memory of our ViT with those of its peers, the ViTs of other libraries.

All have the same weights, and are only measured if their outputs are equal. Several campaigns use
this.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from itertools import cycle
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vit_plugin.arch import ArchCfg
from vit_plugin.errors import ConfigError
from vit_plugin.passes import optimize

from .calls import count_flops, interleaved, peak_memory
from .implementations import OURS, PEERS, PLAIN, build_ours, build_peer

# Largest allowed difference from our output, relative to its largest value. In bfloat16, rounding
# adds up over blocks.
TOLERANCES = {'float32': 1e-4, 'bfloat16': 5e-2, 'amp': 5e-2}
NUM_BATCHES = 3  # different images, which calls take in turn


@dataclass(frozen=True)
class Case:
    """The configuration that is measured."""

    model: str | ArchCfg = 'B/16'  # see vit_plugin.arch.parse_arch
    size: int = 224  # side of the images in pixels
    batch: int = 4  # number of images
    # 'forward': in eval mode, without gradients. 'train': forward, backward, fused AdamW.
    mode: str = 'forward'
    # 'float32', 'bfloat16' (weights and images are cast), or 'amp' (autocast to bfloat16).
    dtype: str = 'float32'
    output: str = 'cls_token'  # or 'featmap', the map of the patches
    compiled: bool = False  # by torch.compile
    device: str = 'cpu'

    def __str__(self) -> str:
        flag = ' compiled' if self.compiled else ''
        return (
            f'{self.model} {self.size}px x{self.batch} {self.mode} {self.dtype} {self.output}{flag}'
        )

    def cast(self, x: Tensor | nn.Module) -> Any:
        """Move images or a model to the device, with the dtype of the case."""
        return x.to(self.device, torch.bfloat16 if self.dtype == 'bfloat16' else torch.float32)

    def autocast(self) -> AbstractContextManager:
        """The context of a forward, which does nothing without ``dtype='amp'``."""
        device = torch.device(self.device).type
        return torch.autocast(device, torch.bfloat16) if self.dtype == 'amp' else nullcontext()


@dataclass(frozen=True)
class Comparison:
    """The result of one implementation."""

    implementation: str  # ours, ours without passes, or a peer
    latency_ms: float  # median of the rounds
    iqr_ms: float  # interquartile range of the rounds
    images_per_s: float  # at the median
    peak_mib: float  # of torch's allocator, above weights, optimizer state and images
    gflop: float  # of one call, counted by torch; a multiply-add counts as two
    # Time divided by ours in the same round, median of the rounds. Above 1, ours is faster.
    times_ours: float
    memory_over_ours: float  # peak memory divided by ours
    difference: float  # largest difference from our output, relative to its largest value


def compare(
    case: Case,
    peers: Iterable[str] = tuple(PEERS),
    rounds: int = 10,
    options: Mapping[str, Any] | None = None,
    tolerance: float | None = None,
    log: Callable[[str], None] = print,
) -> list[Comparison]:
    """Measure our model, with and without the device's passes, and its peers, interleaved.

    A pass rewrites a model for faster inference, see :func:`vit_plugin.passes.optimize`.

    Args:
        case: what to measure.
        peers: keys of :data:`PEERS`.
        rounds: timings of each model.
        options: further arguments of our backbone.
        tolerance: largest allowed difference of the outputs, relative to the largest value. The
            default is in ``TOLERANCES``. Gradients of the images are compared in the Euclidean
            norm, since rounding may switch a ReLU or a maximum and change single values a lot. They
            may differ by ten times as much, and by default by at least 0.01.
        log: called with a message for each peer that is left out.

    Raises:
        ConfigError: if a peer's output, or its gradient of the images, differs from ours.
    """
    torch.manual_seed(0)
    models = _build(case, peers, options, log)
    batches = [
        case.cast(torch.randn(case.batch, 3, case.size, case.size)) for _ in range(NUM_BATCHES)
    ]
    if not case.compiled:  # a compiler has its own passes
        models = {OURS: models[OURS], PLAIN: deepcopy(models[OURS]), **models}
        optimize(models[OURS], frozen=True)
    differences = _check_equal(case, models, batches[0], tolerance)
    flops = {name: count_flops(step_of(case, model, batches)) for name, model in models.items()}
    if case.compiled:
        torch.compiler.reset()
        models = {name: torch.compile(model) for name, model in models.items()}
    calls = {name: step_of(case, model, batches) for name, model in models.items()}
    for call in [*calls.values()] * 2:  # warm-up: compiles, allocates, chooses algorithms
        call()
    device = torch.device(case.device)
    peaks = {name: peak_memory(call, device) for name, call in calls.items()}
    times = interleaved(calls, rounds, repeats=10 if device.type == 'cuda' else 1)
    rows = []
    for name, seconds in times.items():
        low, median, high = np.quantile(seconds, (0.25, 0.5, 0.75))
        rows.append(
            Comparison(
                implementation=name,
                latency_ms=1000 * median,
                iqr_ms=1000 * (high - low),
                images_per_s=case.batch / median,
                peak_mib=peaks[name] / 2**20,
                gflop=flops[name] / 1e9,
                times_ours=float(np.median(np.divide(seconds, times[OURS]))),
                memory_over_ours=peaks[name] / peaks[OURS],
                difference=differences[name],
            )
        )
    return rows


def _build(
    case: Case, peers: Iterable[str], options: Mapping[str, Any] | None, log: Callable[[str], None]
) -> dict[str, nn.Module]:
    """Our model and those peers that are installed and have it, with equal weights."""
    models = {OURS: build_ours(case.model, case.size, case.output, options)}
    for name in peers:
        try:
            models[name] = build_peer(name, case.model, case.size, case.output, models[OURS])
        except ModuleNotFoundError as error:
            log(f'{name} is left out: {error.name} is not installed')
        except NotImplementedError as error:
            log(f'{name} is left out: {error}')
    return {name: case.cast(model).train(case.mode == 'train') for name, model in models.items()}


def step_of(case: Case, model: nn.Module, batches: Sequence[Tensor]) -> Callable[[], None]:
    """A function that runs a forward or a training step on the next batch."""
    endless_batches, train = cycle(batches), case.mode == 'train'
    # With a learning rate of zero, a step does its work but all implementations keep equal weights.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)

    def step() -> None:
        with torch.set_grad_enabled(train), case.autocast():
            output = model(next(endless_batches))
            loss = _loss(output) if train else None
        if loss is not None:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def _loss(output: Tensor) -> Tensor:
    """A mean with another weight for each value: after a norm, a plain mean has no gradient."""
    return (
        output.float() * torch.arange(output.numel(), device=output.device).view_as(output).cos()
    ).mean()


def _check_equal(
    case: Case, models: Mapping[str, nn.Module], images: Tensor, tolerance: float | None
) -> dict[str, float]:
    """The largest difference of each output from ours.

    For training, the gradients of the images must agree too.
    """
    outputs, gradients = {}, {}
    for name, model in models.items():
        inputs = images.clone().requires_grad_(case.mode == 'train')
        with torch.set_grad_enabled(case.mode == 'train'), case.autocast():
            output = model(inputs)
        outputs[name] = output.detach().float()
        if case.mode == 'train':
            _loss(output).backward()
            gradients[name] = torch.as_tensor(inputs.grad).float()
            model.zero_grad()
    allowed = TOLERANCES[case.dtype] if tolerance is None else tolerance
    _differences(
        case,
        gradients,
        order=2,
        allowed=max(10 * allowed, 1e-2 if tolerance is None else 0),
        where=', in the gradient of images',
    )
    return _differences(case, outputs, order=inf, allowed=allowed)


def _differences(
    case: Case, values: Mapping[str, Tensor], order: float, allowed: float, where: str = ''
) -> dict[str, float]:
    """The norm of each difference from ours, relative to ours.

    Raises a ``ConfigError`` if one is too large.
    """
    differences = {
        name: (
            torch.linalg.vector_norm(value - values[OURS], order)
            / torch.linalg.vector_norm(values[OURS], order)
        ).item()
        for name, value in values.items()
    }
    for name, difference in differences.items():
        if not difference <= allowed:
            raise ConfigError(
                f'{name} does not compute what {OURS} computes on {case}{where}: the difference is '
                f'{difference:.1e} of its size, allowed is {allowed:.0e} (--tolerance); such times '
                'cannot be compared.'
            )
    return differences


COLUMNS = {  # field of a Comparison -> title and format
    'latency_ms': ('ms', '.2f'),
    'iqr_ms': ('iqr ms', '.2f'),
    'images_per_s': ('images/s', '.1f'),
    'peak_mib': ('peak MiB', '.1f'),
    'gflop': ('GFLOP', '.2f'),
    'times_ours': ('time/ours', '.3f'),
    'memory_over_ours': ('MiB/ours', '.3f'),
    'difference': ('differs', '.0e'),
}


def format_table(rows: Sequence[Comparison]) -> str:
    """The rows as aligned text."""
    lines = [['', *(title for title, _ in COLUMNS.values())]]
    for row in rows:
        cells = (format(getattr(row, name), spec) for name, (_, spec) in COLUMNS.items())
        lines.append([row.implementation, *cells])
    return '\n'.join(
        f'{first:<23}' + ''.join(f'{cell:>11}' for cell in cells) for first, *cells in lines
    )

"""Compare the time of a model with its limit, the time of its matrix products and convolutions.

    python benchmarks limit [--models B/16 R50+B/16 R26+S/32] [--batch 2] [--rounds 9]

A forward without gradients and a training step are traced for matrix products, convolutions and
attention. Each of these calls is timed by itself, in several memory layouts. The limit is the sum
over the calls of the fastest layout: a model cannot be faster unless its kernels are. This
package's model with and without passes, timm's model and the calls run interleaved, in one thread,
and processor time is measured. The campaign prints the ratio of each model's median time to the
limit, and the parts of the model without passes by torch's profiler (docs/speed.md).
"""

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from benchmarks.measuring.compare import Case, step_of
from benchmarks.measuring.implementations import OURS, PLAIN, build_ours, build_peer
from vit_plugin.passes import optimize, processor

aten = torch.ops.aten
ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu.default
ATTENTION_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
PRODUCTS = {
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.convolution.default,
    aten.convolution_backward.default,
    ATTENTION,
    ATTENTION_BACKWARD,
}
MODES = ('forward', 'train')
LAYOUTS = (torch.preserve_format, torch.contiguous_format, torch.channels_last)
# Parts of a step -> how the names of their operators in the profiler begin. The order matters: an
# operator belongs to the first part that fits.
PARTS = {
    'products': ('mm', 'addmm', 'bmm', 'mkldnn_convolution', '_slow_conv2d', 'convolution'),
    'attention': ('_scaled_dot_product', '_flash_attention'),
    'GroupNorm': ('native_group_norm',),
    'LayerNorm': ('native_layer_norm',),
    'GELU': ('gelu',),
    'ReLU': ('relu', 'threshold', 'clamp_min_'),
    'pad and pool': ('constant_pad', 'max_pool2d', 'fill_'),
    'standardization': ('mean', 'sub', 'linalg_vector_norm', 'div', 'addcmul', '_Standardize'),
    'copies': ('copy_', 'clone', 'cat', 'contiguous'),
    'sums': ('add', 'sum', 'mul'),
    'optimizer': ('_fused_adam', 'Optimizer'),
    'allocation': ('empty', 'resize_', 'zero'),
}


class Trace(TorchDispatchMode):
    """Counts the calls of :data:`PRODUCTS` by their arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[tuple] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func in PRODUCTS:
            shapes = tree_map_only(Tensor, lambda x: Shape(tuple(x.shape), x.stride()), args)
            options = tuple((kwargs or {}).items())
            self.calls[func, _hashable(shapes), options] += 1
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Shape:
    """The shape and the strides of a tensor, in elements."""

    size: tuple[int, ...]
    strides: tuple[int, ...]

    def tensor(self, layout: torch.memory_format) -> Tensor:
        """Random values in a memory layout, or with the strides of the model."""
        values = torch.empty_strided(self.size, self.strides).normal_()
        if layout is torch.channels_last and len(self.size) != 4:
            return values
        return values.clone(memory_format=layout)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def candidates(func: Any, args: tuple, options: tuple) -> Iterator[Callable[[], Any]]:
    """Calls that do the work of a traced call: in each layout, and for attention as plain products.

    Args:
        func, args, options: a key of :attr:`Trace.calls`.
    """
    for layout in LAYOUTS:
        inputs = [x.tensor(layout) if isinstance(x, Shape) else x for x in args]
        if func is aten.addmm.default:  # without the bias
            yield lambda pair=inputs[1:3]: torch.mm(*pair)
        else:
            yield lambda inputs=inputs: func(*inputs, **dict(options))
    if func in (ATTENTION, ATTENTION_BACKWARD):
        query = args[0].tensor(torch.contiguous_format).flatten(0, 1)
        scores = torch.randn(*query.shape[:2], query.shape[1])
        # One product for the scores, one for the values, and in the backward two for each.
        times = 1 if func is ATTENTION else 2
        yield lambda: [(query @ query.mT, scores @ query) for _ in range(times)]


def seconds(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(case: Case, rounds: int) -> tuple[dict[str, float], float, Counter[str]]:
    """Measure the models and their limit.

    Returns:
        The median seconds of each model, by name; the seconds of the limit; and the seconds of the
        parts of this package's model without passes.
    """
    plain = build_ours(case.model, case.size, case.output)
    models = {OURS: deepcopy(plain), PLAIN: plain}
    models['timm'] = build_peer('timm', case.model, case.size, case.output, plain)
    images = [torch.randn(case.batch, 3, case.size, case.size)]
    calls = {
        name: step_of(case, model.train(case.mode == 'train'), images)
        for name, model in models.items()
    }
    optimize(models[OURS], frozen=True)
    with Trace() as trace:
        calls[PLAIN]()
    with torch.set_grad_enabled(False):
        products = {key: list(candidates(*key)) for key in trace.calls}
        for call in (*calls.values(), *chain.from_iterable(products.values())):  # warm up
            call()
    models_took = {name: [] for name in calls}
    products_took = {key: [[] for _ in layouts] for key, layouts in products.items()}
    for _ in range(rounds):
        for name, call in calls.items():
            models_took[name].append(seconds(call))
        with torch.no_grad():
            for key, layouts in products.items():
                for call, took in zip(layouts, products_took[key], strict=True):
                    took.append(seconds(call))
    limit = sum(
        number * min(map(statistics.median, products_took[key]))
        for key, number in trace.calls.items()
    )
    medians = {name: statistics.median(took) for name, took in models_took.items()}
    return medians, limit, seconds_by_part(calls[PLAIN])


def seconds_by_part(call: Callable[[], Any]) -> Counter[str]:
    """The seconds of each of :data:`PARTS` in a call."""
    with profile(activities=[ProfilerActivity.CPU]) as record:
        call()
    parts: Counter[str] = Counter()
    for event in record.key_averages():
        name = event.key.removeprefix('aten::')
        part = next((part for part, starts in PARTS.items() if name.startswith(starts)), 'others')
        parts[part] += event.self_cpu_time_total / 1e6
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--models', nargs='+', default=['B/16', 'R50+B/16', 'R26+S/32'])
    parser.add_argument('--modes', nargs='+', choices=MODES, default=MODES)
    parser.add_argument('--batch', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=9)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(processor.name(), torch.backends.cpu.get_cpu_capability(), torch.__version__, flush=True)
    for model in args.models:
        for mode in args.modes:
            case = Case(model, batch=args.batch, mode=mode)
            took, limit, parts = measure(case, args.rounds)
            over = ', '.join(f'{name} {value / limit:.3f}' for name, value in took.items())
            print(f'{case}: limit {1000 * limit:.0f} ms; over the limit: {over}')
            shares = (f'{name} {value / parts.total():.1%}' for name, value in parts.most_common())
            print('  ' + ', '.join(shares), flush=True)


if __name__ == '__main__':
    main()

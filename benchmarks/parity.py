"""Compare sharded training with training in one process, in float64.

    python benchmarks parity [--steps 30] [--only NAME ...]

Losses, norms of gradients, weights and EMA weights must agree within 1e-10. Each row of ``ROWS``
trains a small classifier on 2 and on 4 processes (FSDP, or HSDP as groups of 2), and in one process
that sees the same 16 images in every step as one batch. With 30 steps all rows take about 10
minutes on two cores, most of it for those that compile.
"""

import argparse
import math
import sys
import tempfile
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / 'tests/support'))

import torch
import torch.distributed as dist
from mmengine.config import ConfigDict
from mmengine.logging import MMLogger
from mmengine.model import BaseDataPreprocessor
from mmengine.optim import build_optim_wrapper
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from mmpretrain.utils import register_all_modules
from ranks import on_ranks
from torch import Tensor, nn

from vit_plugin.engine.sharding import EMAHook, Sharding, shard

BATCH = 16  # images of a step, in all processes together
LIMIT = 1e-10  # allowed absolute difference
PURE = dict(
    arch=dict(embed_dims=32, num_layers=3, num_heads=2, feedforward_channels=64, patch_size=8),
    img_size=32,
)
HYBRID = dict(
    arch=dict(PURE['arch'], patch_size=1, resnet=dict(stage_depths=(1, 1), width=32)), img_size=32
)
DECAY = dict(
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.7),
)


@dataclass(frozen=True)
class Row:
    """A setting of a run.

    Attributes:
        backbone: arguments of the backbone.
        wrapper: arguments of the optimizer's wrapper.
        sharding: arguments of ``Sharding``.
        head: arguments of the head.
        compiled: whether the training step is compiled.
        ema: whether EMA weights are kept, and compared too.
    """

    backbone: dict = field(default_factory=lambda: PURE)
    wrapper: dict = field(default_factory=lambda: dict(clip_grad=dict(max_norm=1.0)))
    sharding: dict = field(default_factory=dict)
    head: dict = field(default_factory=lambda: dict(type='vit_plugin.ViTClsHead'))
    compiled: bool = False
    ema: bool = False


ROWS = {
    'plain': Row(),
    'HSDP': Row(sharding=dict(group=2)),
    'copies (group=1)': Row(sharding=dict(group=1)),
    'kept after the forward': Row(sharding=dict(reshard_after_forward=False)),
    'offloaded': Row(sharding=dict(cpu_offload=True)),
    'activation checkpointing': Row(dict(PURE, with_cp=True)),
    'accumulation': Row(wrapper=dict(accumulative_counts=4, clip_grad=dict(max_norm=1.0))),
    'clipped by value': Row(wrapper=dict(clip_grad=dict(type='value', clip_value=1e-3))),
    'layer decay': Row(wrapper=dict(DECAY, clip_grad=dict(max_norm=1.0))),
    'frozen stem': Row(dict(HYBRID, frozen_stages=0)),
    'frozen blocks': Row(dict(PURE, frozen_stages=2)),
    'hybrid': Row(HYBRID),
    'relative positions, windows': Row(
        dict(
            PURE,
            pos_embed=dict(type='learned', relative=True),
            with_cls_token=False,
            out_type='avg_featmap',
            encoder=dict(
                window=dict(size=2, global_blocks=(1,)), layer_scale_init_value=0.1, qk_norm=True
            ),
        )
    ),
    'distilled head': Row(
        dict(PURE, encoder=dict(dist_token=1), out_type='raw'),
        head=dict(type='vit_plugin.DistilledViTClsHead', distillation='none'),
    ),
    'EMA': Row(ema=True),
    'all of it': Row(
        dict(HYBRID, with_cp=True, frozen_stages=0),
        wrapper=dict(DECAY, accumulative_counts=4, clip_grad=dict(max_norm=1.0)),
        ema=True,
    ),
    'all of it, HSDP': Row(
        dict(HYBRID, with_cp=True, frozen_stages=0),
        sharding=dict(group=2),
        wrapper=dict(DECAY, accumulative_counts=4, clip_grad=dict(max_norm=1.0)),
        ema=True,
    ),
    'compiled': Row(compiled=True),
    'compiled, all of it': Row(
        dict(HYBRID, with_cp=True, frozen_stages=0),
        compiled=True,
        wrapper=dict(DECAY, accumulative_counts=4, clip_grad=dict(max_norm=1.0)),
        ema=True,
    ),
}


class RunnerStub:
    """The attributes of a runner that the EMA hook needs."""

    def __init__(self, model: nn.Module, steps: int) -> None:
        self.model, self.iter, self.max_iters = model, 0, steps


def train(row: Row, steps: int, sharded: bool) -> dict[str, Tensor]:
    """Train one model.

    Returns:
        Its losses, averaged over the ranks, its norms of gradients, its weights and its EMA
        weights, by name. They are whole tensors, also if the model is sharded.
    """
    torch.manual_seed(0)
    register_all_modules(init_default_scope=True)
    MMLogger.get_current_instance().setLevel('WARNING')
    model = MODELS.build(
        dict(
            type='ImageClassifier',
            backbone=dict(row.backbone, type='vit_plugin.VisionTransformer'),
            head=dict(
                row.head,
                num_classes=4,
                in_channels=32,
                loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
            ),
        )
    ).double()
    for parameter in model.head.parameters():
        nn.init.normal_(parameter, std=0.1)  # at zero it would give no gradient to the backbone
    model.data_preprocessor = BaseDataPreprocessor()
    images, labels = (
        torch.randn(steps, BATCH, 3, 32, 32).double(),
        torch.randint(0, 4, (steps, BATCH)),
    )
    ranks, rank = (dist.get_world_size(), dist.get_rank()) if sharded else (1, 0)
    if sharded:
        shard(model, Sharding(**row.sharding), 'cpu')
    # Some gradients are only rounding errors, such as that of the keys' bias. AdamW divides by the
    # size of a gradient, so its default eps would enlarge them.
    wrapper = build_optim_wrapper(
        model,
        ConfigDict(
            deepcopy(row.wrapper),
            type='vit_plugin.OptimWrapper',
            optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05, eps=1e-5),
        ),
    )
    wrapper.initialize_count_status(model, 0, steps)
    wrapper.defer_grad_norm()
    runner, hook = RunnerStub(model, steps), EMAHook(momentum=0.1)
    if row.ema:
        hook.before_run(runner)
        hook.before_train(runner)
    step = (
        torch.compile(model.train_step, backend='aot_eager') if row.compiled else model.train_step
    )
    losses, norms = [], []
    for runner.iter in range(steps):
        own = slice(rank, None, ranks)  # the images of this rank
        outputs = step(
            dict(
                inputs=images[runner.iter, own],
                data_samples=[
                    DataSample().set_gt_label(label) for label in labels[runner.iter, own]
                ],
            ),
            wrapper,
        )
        losses.append(outputs['loss'].detach().clone())
        norm = wrapper.last_update.grad_norm
        norms.append(torch.zeros(()) if norm is None else norm)
        if row.ema:
            hook.after_train_iter(runner, runner.iter)
    losses = torch.stack(losses)
    if sharded:
        dist.all_reduce(losses.div_(ranks))
    results = {
        'losses': losses,
        'norms': torch.stack(norms),
        **{
            f'weight {name}': value
            for name, value in model.state_dict().items()
            if value.is_floating_point()
        },
    }
    if row.ema:
        results.update({f'EMA weight {name}': value for name, value in hook._averages.items()})
    return {
        name: value.full_tensor() if hasattr(value, 'full_tensor') else value
        for name, value in results.items()
    }


def largest_difference(found: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[float, str]:
    """The largest difference of a value, and the name of its tensor. A NaN counts as infinite."""
    return max(
        ((found[name] - value).abs().nan_to_num(nan=math.inf).max().item(), name)
        for name, value in expected.items()
    )


def difference(row: Row, steps: int, expected: dict[str, Tensor]) -> tuple[float, str]:
    """On one of the ranks: the largest difference from one process, and the name of its tensor."""
    found = train(row, steps, sharded=True)
    assert found.keys() == expected.keys()
    assert found['losses'].std() > 0  # otherwise nothing was trained
    return largest_difference(found, expected)


def write_differences(
    names: list[str], steps: int, expected: dict[str, dict[str, Tensor]], folder: str
) -> None:
    """On each of the ranks: write the difference of every row to a file.

    Args:
        names: the rows.
        steps: the length of the training.
        expected: the results of one process, by row.
        folder: the folder of the files ``ROW-RANKS-RANK``.
    """
    for name in names:
        torch._dynamo.reset()
        size, tensor = difference(ROWS[name], steps, expected[name])
        Path(folder, f'{name}-{dist.get_world_size()}-{dist.get_rank()}').write_text(
            f'{size} {tensor}'
        )


def rows_on(
    ranks: int,
    names: list[str],
    steps: int,
    expected: dict[str, dict[str, Tensor]],
) -> dict[str, tuple[float, str]]:
    """The largest difference of each row on this number of ranks, and the name of its tensor."""
    with tempfile.TemporaryDirectory() as folder:
        on_ranks(ranks, Path(folder), write_differences, names, steps, expected, folder)
        largest: dict[str, Any] = {}
        for name in names:
            lines = [
                Path(folder, f'{name}-{ranks}-{rank}').read_text().split(' ', 1)
                for rank in range(ranks)
            ]
            largest[name] = max((float(size), tensor) for size, tensor in lines)
        return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--steps', type=int, default=30)
    parser.add_argument('--only', nargs='+', choices=ROWS, default=list(ROWS), metavar='NAME')
    args = parser.parse_args()
    worst = 0.0
    for name in args.only:
        expected = {name: train(ROWS[name], args.steps, sharded=False)}
        for ranks in (2, 4):
            size, tensor = rows_on(ranks, [name], args.steps, expected)[name]
            print(f'{name}, {ranks} ranks: {size:.1e} ({tensor})', flush=True)
            worst = max(worst, size)
    print(
        f'{len(args.only)} rows, {args.steps} steps, on 2 and 4 ranks: the largest difference '
        f'from one process is {worst:.1e}; allowed are {LIMIT:.0e}'
    )
    sys.exit(worst > LIMIT)


if __name__ == '__main__':
    main()

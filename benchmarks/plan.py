"""Compare the planned memory of a training step with what torch really allocates, on a CPU.

    python benchmarks plan [--only TEXT]

The plan, as ``vit-plugin plan`` makes it, only knows the config. For the measurement, two processes
train with gloo, and with the optimizer wrapper and sharding of a run; torch's profiler records
every allocation of the third step. The status is 1 if a plan is too far off. It takes about three
minutes on two cores.
"""

import argparse
import json
import math
import sys
import tempfile
import warnings
from bisect import bisect
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.model import MMDistributedDataParallel
from mmengine.optim import build_optim_wrapper
from mmpretrain.structures import DataSample
from torch.multiprocessing import get_context
from torch.profiler import ProfilerActivity, profile, record_function

from vit_plugin.arch import parse_arch
from vit_plugin.engine.sharding import Sharding, shard
from vit_plugin.measure.planning.forecast import Forecast, equal_blocks
from vit_plugin.measure.planning.planned_model import build_classifier
from vit_plugin.measure.planning.traced_step import Layout, pretended_ranks
from vit_plugin.models.layers.recompute import Recompute

RANKS = 2
GOAL = 0.05  # allowed error of the plan, relative to the measurement
MEASURED = 'measured step'  # the name of the third step in the profile


class Case(NamedTuple):
    """A setting to plan and to measure."""

    name: str
    arch: str
    sharded: bool
    recompute: Recompute = False
    optimizer: str = 'AdamW'
    img_size: int = 224
    batch: int = 4


CASES = (
    Case('S/16, FSDP2', 'S/16', True),
    Case('S/16, FSDP2, recompute', 'S/16', True, recompute=True),
    Case('S/16, FSDP2, selective', 'S/16', True, recompute='selective'),
    Case('S/16, DDP, SGD', 'S/16', False, optimizer='SGD'),
    Case('S/16, DDP, recompute', 'S/16', False, recompute=True),
    Case('S/16, DDP, selective', 'S/16', False, recompute='selective'),
    Case('B/16, FSDP2, 112 px', 'B/16', True, img_size=112),
    Case(
        'B/16, FSDP2, SGD, recompute, 112 px',
        'B/16',
        True,
        recompute=True,
        optimizer='SGD',
        img_size=112,
    ),
    Case('R26+S/32, FSDP2', 'R26+S/32', True, batch=2),
    Case('R26+S/32, DDP, 96 px', 'R26+S/32', False, img_size=96),
)


def config_of(case: Case) -> Config:
    """A classifier's config, as a recipe has it."""
    optimizer = dict(
        type=case.optimizer, lr=1e-3, **(dict(momentum=0.9) if case.optimizer == 'SGD' else {})
    )
    width = dict(S=384, B=768, Ti=192)[case.arch.rpartition('+')[2].partition('/')[0]]
    return Config(
        dict(
            default_scope='mmpretrain',
            model=dict(
                type='ImageClassifier',
                backbone=dict(
                    type='vit_plugin.VisionTransformer', arch=case.arch, img_size=case.img_size
                ),
                head=dict(type='vit_plugin.ViTClsHead', num_classes=1000, in_channels=width),
            ),
            data_preprocessor=dict(num_classes=1000, mean=[127.5] * 3, std=[127.5] * 3),
            optim_wrapper=dict(
                type='vit_plugin.OptimWrapper', optimizer=optimizer, clip_grad=dict(max_norm=1.0)
            ),
        )
    )


def planned(case: Case) -> float:
    """Bytes at the peak of a step, by the plan."""
    cfg = config_of(case)
    with pretended_ranks(RANKS):
        layout = Layout(RANKS, RANKS, RANKS if case.sharded else 1, case.recompute, device='cpu')
        blocks = equal_blocks(cfg, parse_arch(case.arch).num_layers)
        return Forecast(cfg, layout, blocks).memory(case.batch).total()


def measured(case: Case) -> float:
    """Bytes at the peak of a step, as torch's allocator gave them to the first of two processes."""
    with tempfile.TemporaryDirectory() as folder:
        context = get_context('fork')
        processes = [
            context.Process(target=_train, args=(case, rank, folder)) for rank in range(RANKS)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            raise SystemExit(
                f'{case.name}: a process ended with {[process.exitcode for process in processes]}.'
            )
        return _peak(json.loads(Path(folder, 'trace.json').read_text())['traceEvents'])


def _train(case: Case, rank: int, folder: str) -> None:
    """In one of the processes: train for three steps. The first writes ``trace.json``."""
    torch.set_num_threads(1)
    dist.init_process_group(
        'gloo', init_method=f'file://{folder}/store', rank=rank, world_size=RANKS
    )
    cfg = config_of(case)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        model = build_classifier(cfg, case.recompute).train()
        model = (
            shard(model, Sharding(), 'cpu')
            if case.sharded
            else MMDistributedDataParallel(model, broadcast_buffers=False)
        )
        wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
        wrapper.defer_grad_norm()
        for step in range(3):
            if step < 2:
                _step(model, wrapper, case)
            else:
                with record_function(MEASURED):
                    _step(model, wrapper, case)
    if rank == 0:
        record.export_chrome_trace(f'{folder}/trace.json')
    dist.barrier()
    dist.destroy_process_group()


def _step(model: torch.nn.Module, wrapper: object, case: Case) -> None:
    images = torch.zeros(case.batch, 3, case.img_size, case.img_size, dtype=torch.uint8)
    model.train_step(
        dict(inputs=images, data_samples=[DataSample().set_gt_label(0)] * case.batch), wrapper
    )


def _peak(events: list[dict]) -> float:
    """The peak of the memory during the measured step, by the allocations in the profile.

    Gloo copies what it reduces, and frees the copy in a thread that the profile does not see. NCCL
    makes no such copy, so that what the collectives themselves allocate is left out.
    """
    step = next(event for event in events if event['name'] == MEASURED)
    collectives = [
        event for event in events if event['name'].startswith('c10d::') and 'dur' in event
    ]
    spans = sorted(  # start, end and thread
        (event['ts'], event['ts'] + event['dur'], event['tid']) for event in collectives
    )
    blocks: dict[int, int] = {}
    held = peak = 0
    for event in sorted(
        (event for event in events if event['name'] == '[memory]'), key=lambda event: event['ts']
    ):
        size, address, time = event['args']['Bytes'], event['args']['Addr'], event['ts']
        held -= blocks.pop(address, 0)
        start, end, thread = spans[bisect(spans, (time, math.inf)) - 1] if spans else (0, 0, 0)
        # The latest collective that has begun may still be running, in the same thread.
        is_of_collective = start <= time <= end and thread == event['tid']
        if size > 0 and not is_of_collective:
            blocks[address] = size
            held += size
        if step['ts'] <= time <= step['ts'] + step['dur']:
            peak = max(peak, held)
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--only', default='', help='only the settings whose name contains this')
    only = parser.parse_args().only
    cases = [case for case in CASES if only in case.name]
    if not cases:
        parser.error(f'--only {only}: the settings are {"; ".join(case.name for case in CASES)}')
    warnings.simplefilter('ignore')
    worst = 0.0
    # Measure first: no process may be forked after a backward pass.
    measurements = [measured(case) for case in cases]
    for case, allocated in zip(cases, measurements, strict=True):
        plan = planned(case)
        error = plan / allocated - 1
        worst = max(worst, abs(error))
        print(
            f'{case.name:<40}{plan / 2**20:>9.1f} MiB planned{allocated / 2**20:>9.1f} '
            f'measured{error:>+8.1%}',
            flush=True,
        )
    print(f'plan: {len(cases)} settings, the worst {worst:.1%} off, goal {GOAL:.0%}')
    sys.exit(worst > GOAL)


if __name__ == '__main__':
    main()

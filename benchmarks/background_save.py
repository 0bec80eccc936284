"""Measure how long a save stops training, and how much host memory it takes.

    python benchmarks background_save [--rounds 5] [--arch B/16]

The state of ViT-B/16 with AdamW has 1.03 GB. Each round saves it by MMEngine's own method and by
ours: in a file, in a folder, and in a folder in the background, during which the next four steps
are trained. Each background checkpoint is compared with a copy of the state that was taken before
it. It takes three minutes, and needs a quiet machine with 6 GB of free memory. The exit status is 1
if a limit is exceeded or a background checkpoint differs.
"""

import argparse
import ctypes
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner as PlainRunner

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.arch import parse_arch
from vit_plugin.engine.checkpoints.state import capture_state, on_cpu, split_state
from vit_plugin.weights.reading.folders import check_complete, read_folder
from vit_plugin.weights.reading.plain import split_tensors

FIRST_STEP, STEPS_PER_ROUND = 2, 5  # the rounds of saves
# Limits of the background save: its pause relative to that of a plain save in a folder, and its
# memory relative to the state.
MAX_PAUSE, MAX_MEMORY = 0.05, 1.1


def peak_memory() -> int:
    """The peak memory of this process since :func:`forget_peak`, in bytes."""
    return _memory('VmHWM')


def forget_peak() -> int:
    """Reset the peak. Returns the current memory in bytes."""
    # Free memory that is still resident would hide what a save allocates.
    ctypes.CDLL(None).malloc_trim(0)
    Path('/proc/self/clear_refs').write_text('5')  # 5 resets VmHWM
    return _memory('VmRSS')


def _memory(name: str) -> int:
    """The entry of this name in the process's status, in bytes."""
    line = next(
        line for line in Path('/proc/self/status').read_text().splitlines() if line.startswith(name)
    )
    return int(line.split()[1]) * 1024


@dataclass
class SaveCost:
    """The cost of a kind of save: seconds of paused training, and bytes of additional memory."""

    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def add(self, save: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> None:
        """Time a save. Its memory is measured until ``wait``, which is not timed, has returned."""
        before, start = forget_peak(), time.perf_counter()
        save()
        self.seconds.append(time.perf_counter() - start)
        wait()
        self.memory.append(peak_memory() - before)


class SavesInRounds(Hook):
    """Saves the state in each way after some of the steps."""

    priority = 'LOWEST'

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.measured = {name: SaveCost() for name in ('MMEngine', 'file', 'folder', 'background')}
        self.bytes, self.snapshot = 0, {}  # the tensors at the last background save, and their size
        self.num_exact = 0  # background checkpoints that equal their snapshot

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        step = runner.iter + 1
        if step < FIRST_STEP or (step - FIRST_STEP) % STEPS_PER_ROUND:
            return
        self.check_background(runner)
        out, position = str(self.folder), dict(epoch=0, iter=step)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            self.measured['MMEngine'].add(
                lambda: PlainRunner.save_checkpoint(runner, out, 'mmengine.pth', meta=position)
            )
        self.measured['file'].add(
            lambda: runner.save_checkpoint(out, 'file.pth', meta=dict(position))
        )
        self.measured['folder'].add(
            lambda: runner.saver.save(out, 'plain', meta=dict(position), folder=True)
        )
        state = on_cpu(capture_state(runner, dict(position)), copy=True)
        self.snapshot = split_state(state, main=True)[0]
        self.bytes = sum(tensor.nbytes for tensor in self.snapshot.values())
        # The first round measures the entire save. In later rounds training continues during the
        # write.
        self.measured['background'].add(
            lambda: runner.saver.save(
                out, 'background', meta=dict(position), folder=True, background=True
            ),
            runner.saver.wait if not self.num_exact else lambda: None,
        )

    def check_background(self, runner: Any) -> None:
        """Assert that the last background checkpoint has the state at the time of its save."""
        if self.snapshot:
            runner.saver.finish()
            check_complete(self.folder / 'background')
            saved, _ = split_tensors(read_folder(self.folder / 'background', parts=None))
            wrong = [
                name
                for name, tensor in self.snapshot.items()
                if not name.startswith('message_hub') and not torch.equal(tensor, saved[name])
            ]
            assert not wrong, f'these differ from the state at the save: {wrong[:5]}'
            self.num_exact, self.snapshot = self.num_exact + 1, {}

    def after_train(self, runner: Any) -> None:
        self.check_background(runner)


def measure(folder: Path, rounds: int, arch: Any) -> SavesInRounds:
    """Train and save in rounds."""
    width = parse_arch(arch).embed_dims
    runner = build(
        tiny_cfg(
            folder,
            'iter',
            train_cfg=dict(by_epoch=False, max_iters=FIRST_STEP + STEPS_PER_ROUND * rounds - 1),
            val_dataloader=None,
            val_cfg=None,
            val_evaluator=None,
            custom_hooks=[],
            **{
                'model.backbone.arch': arch,
                'model.backbone.img_size': 32,
                'model.head.in_channels': width,
                'train_dataloader.batch_size': 2,
                'default_hooks.checkpoint': None,
                'param_scheduler': None,
                'train_dataloader.dataset.pipeline': [
                    dict(type='Resize', scale=32),
                    dict(type='PackInputs'),
                ],
            },
        )
    )
    saving = SavesInRounds(folder)
    runner.register_hook(saving)
    runner.train()
    return saving


def main() -> None:
    parser = argparse.ArgumentParser(description='Measure the saves.')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--arch', default='B/16')
    args = parser.parse_args()
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory() as folder:
        saving = measure(Path(folder), args.rounds, args.arch)
    # The first round warms up; with a single round there is no other.
    seconds = {
        name: statistics.median(cost.seconds[1:] or cost.seconds)
        for name, cost in saving.measured.items()
    }
    memory = {name: max(cost.memory) / saving.bytes for name, cost in saving.measured.items()}
    for name, stopped in seconds.items():
        print(f'{name:10} stops training {stopped:6.3f} s, takes {memory[name]:4.2f} x the state')
    share = seconds['background'] / seconds['folder']
    share_of_mmengine = seconds['background'] / seconds['MMEngine']
    print(
        f'{args.arch}, {saving.bytes / 1e9:.2f} GB, {args.rounds} rounds: in the background a save '
        f'stops training for {share:.1%} of a plain save in a folder and {share_of_mmengine:.1%} '
        f"of MMEngine's; {saving.num_exact} of {args.rounds} snapshots bit-exact; at most "
        f'{memory["background"]:.2f} x the state in memory'
    )
    sys.exit(
        share > MAX_PAUSE or memory['background'] > MAX_MEMORY or saving.num_exact < args.rounds
    )


if __name__ == '__main__':
    main()

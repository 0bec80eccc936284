"""Find where transformer blocks pay: 0, 2 or 4 of them after a CNN, and a pure ViT, in equal time.

    python benchmarks blocks [--minutes 5] [--seeds 3] [--task NAME ...] [--only NAME ...]

Images of 32 x 32 show scanned digits of scikit-learn in separate cells of 8 x 8, on noise. The
three tasks differ in what the answer needs:

- count: the number of fours among six scans, 0 to 4. Each scan contributes independently.
- same: whether two scans show the same digit. It takes both scans to tell.
- odd: the digit that occurs once among three scans, two of which show the same digit.

The CNN has half the channels of the CIFAR-10 recipe's and no whitened root (first convolution), and
the optimizer is the recipe's. Time is the CPU time of one thread, and the learning rate is a
function of the elapsed time. Images are composed anew for each step from 1,297 scans, and the 2,000
for validation from the 500 others.
"""

import argparse
import logging
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from sklearn.datasets import load_digits
from torch import Tensor, nn

import vit_plugin

ROOT = Path(__file__).parents[1]
SIZE, CELL, BATCH, VAL = 32, 8, 128, 2000
CLASSES = dict(count=5, same=2, odd=10)
WIDTH = 96
CNN = dict(
    type='PooledResNetEmbed',
    channels=(12, 32, 64, WIDTH),
    patch_size=1,
    projection=False,
    skip=False,
    channels_last=True,
)
SCHEDULE = 'configs/_base_/schedules/muon_linear_15e.py'
ARCH = dict(embed_dims=WIDTH, num_heads=3, feedforward_channels=2 * WIDTH)


def models() -> dict[str, dict]:
    """The backbone of each name."""
    common = dict(img_size=SIZE, with_cls_token=False, out_type='avg_featmap')
    hybrid = dict(
        common,
        patch_embed=CNN,
        numerics=dict(stem_norm_cfg=dict(type='BN')),
        encoder=dict(layer_scale_init_value=0.1),
    )
    return {
        'the CNN alone': dict(hybrid, arch=dict(ARCH, num_layers=0)),
        '2 blocks': dict(hybrid, arch=dict(ARCH, num_layers=2)),
        '4 blocks': dict(hybrid, arch=dict(ARCH, num_layers=4)),
        'pure ViT, 6 blocks': dict(common, arch=dict(ARCH, num_layers=6, patch_size=4)),
    }


class Scans:
    """Draws images of a task. Training and validation have no scan in common."""

    def __init__(self, task: str, validation: bool) -> None:
        scans, digits = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(scans))
        chosen = order[-500:] if validation else order[:-500]
        scans = 255 / 16 * scans[chosen].reshape(-1, CELL, CELL)
        self.by_digit = [scans[digits[chosen] == digit] for digit in range(10)]
        self.draw = getattr(self, task)  # the method with the name of the task

    def count(self, rng: np.random.Generator) -> tuple[list[int], int]:
        """The digits of an image, and its class."""
        fours = int(rng.integers(CLASSES['count']))
        others = rng.choice([digit for digit in range(10) if digit != 4], 6 - fours)
        return [4] * fours + others.tolist(), fours

    def same(self, rng: np.random.Generator) -> tuple[list[int], int]:
        """The digits of an image, and its class."""
        first, second = rng.choice(10, 2, replace=False).tolist()
        answer = int(rng.integers(2))
        return [first, first if answer else second], answer

    def odd(self, rng: np.random.Generator) -> tuple[list[int], int]:
        """The digits of an image, and its class."""
        first, second = rng.choice(10, 2, replace=False).tolist()
        return [first, first, second], second

    def image(self, rng: np.random.Generator) -> tuple[np.ndarray, int]:
        """An image (SIZE, SIZE) of 0 to 255, and its class."""
        digits, label = self.draw(rng)
        image = rng.uniform(0, 128, (SIZE, SIZE))
        cells = rng.choice((SIZE // CELL) ** 2, len(digits), replace=False)
        for digit, cell in zip(digits, cells, strict=True):
            y, x = (CELL * int(index) for index in divmod(cell, SIZE // CELL))
            image[y : y + CELL, x : x + CELL] = rng.choice(self.by_digit[digit])
        return image, label

    def batch(self, rng: np.random.Generator, number: int) -> tuple[Tensor, Tensor]:
        """Images (number, 3, SIZE, SIZE), and their classes (number,)."""
        images, labels = zip(*(self.image(rng) for _ in range(number)), strict=True)
        gray = torch.from_numpy(np.stack(images)).float() / 127.5 - 1
        return gray[:, None].expand(-1, 3, -1, -1).contiguous(), torch.tensor(labels)


class Training:
    """A classifier that learns a task, and the CPU seconds of its steps so far."""

    def __init__(self, backbone: dict, task: str, seed: int) -> None:
        torch.manual_seed(seed)
        self.model: nn.Module = vit_plugin.create_model(num_classes=CLASSES[task], **backbone)
        self.optimizer = build_optim_wrapper(
            self.model, Config.fromfile(ROOT / SCHEDULE).optim_wrapper
        )
        self.rates = [group['lr'] for group in self.optimizer.param_groups]
        self.seconds, self.steps = 0.0, 0

    def step(self, images: Tensor, labels: Tensor, share: float) -> None:
        """One step, with the learning rate for the elapsed share of the time."""
        start = time.process_time()
        factor = min(share / 0.05 + 0.01, 1 - share)  # warm-up, then linear to 0
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group['lr'] = rate * factor
        self.optimizer.update_params(F.cross_entropy(self.model(images), labels))
        self.seconds += time.process_time() - start
        self.steps += 1

    @torch.no_grad()
    def top1(self, images: Tensor, labels: Tensor) -> float:
        """The top-1 accuracy in percent."""
        predicted = torch.cat([self.model.eval()(part).argmax(1) for part in images.split(500)])
        return 100 * (predicted == labels).double().mean().item()


def train(task: str, backbones: dict[str, dict], seconds: float, seed: int) -> dict[str, Training]:
    """Train all of them, each for this many CPU seconds.

    The next step always belongs to the model with the least time so far, so that other work on the
    machine slows all of them equally.
    """
    scans = Scans(task, validation=False)
    trainings = {name: Training(backbone, task, seed) for name, backbone in backbones.items()}
    rngs = {name: np.random.default_rng(seed) for name in backbones}
    while True:
        name = min(trainings, key=lambda name: trainings[name].seconds)
        share = trainings[name].seconds / seconds
        if share >= 1:
            return trainings
        trainings[name].step(*scans.batch(rngs[name], BATCH), share)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--minutes', type=float, default=5, help='CPU time of each training')
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--task', nargs='+', default=list(CLASSES), choices=CLASSES)
    parser.add_argument('--only', nargs='+', default=list(models()), choices=models())
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    backbones = {name: models()[name] for name in args.only}
    for task in args.task:
        images, labels = Scans(task, validation=True).batch(np.random.default_rng(1), VAL)
        top1s: dict[str, list[float]] = {name: [] for name in backbones}
        for seed in range(args.seeds):
            for name, training in train(task, backbones, 60 * args.minutes, seed).items():
                top1s[name].append(training.top1(images, labels))
                print(
                    f'{task}, {name}, seed {seed}: {training.steps} steps, {top1s[name][-1]:.1f} %',
                    flush=True,
                )
        for name, values in top1s.items() if args.seeds > 1 else ():
            print(f'{task}, {name}: {statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}')


if __name__ == '__main__':
    main()

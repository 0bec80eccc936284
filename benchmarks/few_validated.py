"""Find which weights to keep after a training on 60 images: the best validated, the last, or EMA.

    python benchmarks few_validated [--draws 12]

Each draw takes 20 images of each of three of scikit-learn's digits, holds out a tenth or a fifth of
them for validation, and trains the recipe's hybrid for 36 epochs with AdamW and a cosine schedule.
Four sets of weights are then tested on the other 477 images: those of the first and of the latest
epoch with the best validation score, the last, and their EMA. A training takes about 10 s of CPU
time.
"""

import argparse
import copy
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from mmengine.registry import MODELS, DefaultScope
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from vit_plugin.config import read_config
from vit_plugin.importable import make_importable

DIGITS, PER_CLASS = (3, 8, 9), 20
EPOCHS, BATCH, RATE, EMA_DECAY = 36, 8, 1e-3, 0.98
WEIGHT_SETS = ('first best', 'latest best', 'last', 'EMA')


class Split(NamedTuple):
    """Indices of the images for training, validation and testing."""

    train: Tensor
    val: Tensor
    test: Tensor


def draw_split(labels: Tensor, share: float, seed: int) -> Split:
    """Draw images of each class, and hold out a share of them for validation."""
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(labels == k)) for k in range(len(DIGITS))]
    held = round(share * PER_CLASS)
    slices = (slice(held, PER_CLASS), slice(held), slice(PER_CLASS, None))  # the fields of Split
    return Split(
        *(torch.tensor(np.concatenate([images[part] for images in drawn])) for part in slices)
    )


def classifier() -> nn.Module:
    """The classifier of the recipe of digits. Its images are already normalized here."""
    cfg = read_config('configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py').model
    cfg.head.num_classes, cfg.head.topk = len(DIGITS), (1,)
    cfg.head.loss = dict(type='CrossEntropyLoss')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return MODELS.build(cfg)


def logits(model: nn.Module, images: Tensor) -> Tensor:
    return model.head(model.extract_feat(images))


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The accuracy in percent."""
    with torch.no_grad():
        predicted = logits(model.eval(), images).argmax(1)
    return 100 * (predicted == labels).float().mean().item()


def train_epochs(
    model: nn.Module, ema: nn.Module, images: Tensor, labels: Tensor
) -> Iterator[None]:
    """Train a model and its EMA, and yield after each epoch.

    The augmentation shifts the images of a batch by up to a pixel.
    """
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.05)
    per_epoch, step = math.ceil(len(images) / BATCH), 0
    for _ in range(EPOCHS):
        model.train()
        for part in torch.randperm(len(images)).split(BATCH):
            cosine = 0.5 * (1 + math.cos(math.pi * step / (EPOCHS * per_epoch)))
            optimizer.param_groups[0]['lr'] = RATE * min((step + 1) / per_epoch, cosine)
            moved = torch.roll(images[part], torch.randint(-1, 2, (2,)).tolist(), (2, 3))
            optimizer.zero_grad()
            F.cross_entropy(logits(model, moved), labels[part]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            weights = zip(ema.state_dict().values(), model.state_dict().values(), strict=True)
            for mean, value in weights:
                if mean.is_floating_point():
                    # The decay grows, so that early weights count little.
                    mean.lerp_(value, 1 - min(EMA_DECAY, (1 + step) / (10 + step)))
        yield


def scores(images: Tensor, labels: Tensor, share: float, seed: int) -> list[float]:
    """The test accuracy in percent of each of :data:`WEIGHT_SETS`."""
    torch.manual_seed(seed)
    split = draw_split(labels, share, seed)
    model = classifier()
    ema, best = copy.deepcopy(model), -1.0
    first = latest = model
    for _ in train_epochs(model, ema, images[split.train], labels[split.train]):
        score = accuracy(model, images[split.val], labels[split.val])
        if score >= best:
            latest = copy.deepcopy(model)
            first, best = (latest if score > best else first), score
    return [
        accuracy(kept, images[split.test], labels[split.test])
        for kept in (first, latest, model, ema)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--draws', type=int, default=12)
    draws = parser.parse_args().draws
    make_importable()
    pixels, digits = load_digits(return_X_y=True)
    chosen = np.isin(digits, DIGITS)
    images = torch.tensor(pixels[chosen] / 8 - 1, dtype=torch.float32).view(-1, 1, 8, 8)
    labels = torch.tensor(np.searchsorted(DIGITS, digits[chosen]))
    for share in (0.1, 0.2):
        accuracies = np.array([scores(images, labels, share, seed) for seed in range(draws)])
        gain = accuracies[:, 2] - accuracies[:, 0]
        print(
            f'{share:.0%} held out, {draws} draws: '
            + ', '.join(
                f'{k} {v:.1f}' for k, v in zip(WEIGHT_SETS, accuracies.mean(0), strict=True)
            )
            + f'; last above first best {gain.mean():.1f} ± {gain.std() / draws**0.5:.1f}',
            flush=True,
        )


if __name__ == '__main__':
    main()

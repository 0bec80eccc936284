"""Which weights to keep after a training on 60 images: the best of few validations, or the last.

    python benchmarks few_validated [--draws 12]

Each draw takes 20 images of three of scikit-learn's digits, holds out a tenth or a fifth of them,
trains the six-layer model of the digits for 36 epochs with AdamW and a cosine, and asks four sets
of weights about the other 477 images. It takes about 10 s of processor time a training.
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
EPOCHS, BATCH, RATE, DECAY = 36, 8, 1e-3, 0.98  # DECAY: that of the weight average
KINDS = ('first best', 'latest best', 'last', 'average')


class Parts(NamedTuple):
    """Positions of images to train on, to validate and to test."""

    train: Tensor
    val: Tensor
    test: Tensor


def divide(labels: Tensor, share: float, seed: int) -> Parts:
    """Draw the images of each class, and hold out a share of them."""
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(np.flatnonzero(labels == k)) for k in range(len(DIGITS))]
    held = round(share * PER_CLASS)
    slices = (slice(held, PER_CLASS), slice(held), slice(PER_CLASS, None))  # as in Parts
    return Parts(
        *(torch.tensor(np.concatenate([images[part] for images in drawn])) for part in slices)
    )


def classifier() -> nn.Module:
    """The classifier of the recipe of digits, which needs no preprocessor here."""
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


def epochs(model: nn.Module, average: nn.Module, images: Tensor, labels: Tensor) -> Iterator[None]:
    """Train, and yield after each epoch. An image is moved by up to a pixel."""
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
            weights = zip(average.state_dict().values(), model.state_dict().values(), strict=True)
            for mean, value in weights:
                if mean.is_floating_point():
                    mean.lerp_(value, 1 - min(DECAY, (1 + step) / (10 + step)))
        yield


def scores(images: Tensor, labels: Tensor, share: float, seed: int) -> list[float]:
    """The accuracy on the images to test of each of :data:`KINDS`."""
    torch.manual_seed(seed)
    parts = divide(labels, share, seed)
    model = classifier()
    average, best = copy.deepcopy(model), -1.0
    first = latest = model
    for _ in epochs(model, average, images[parts.train], labels[parts.train]):
        score = accuracy(model, images[parts.val], labels[parts.val])
        if score >= best:
            latest = copy.deepcopy(model)
            first, best = (latest if score > best else first), score
    return [
        accuracy(kept, images[parts.test], labels[parts.test])
        for kept in (first, latest, model, average)
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
        found = np.array([scores(images, labels, share, seed) for seed in range(draws)])
        gain = found[:, 2] - found[:, 0]
        print(
            f'{share:.0%} held out, {draws} draws: '
            + ', '.join(f'{k} {v:.1f}' for k, v in zip(KINDS, found.mean(0), strict=True))
            + f'; last above first best {gain.mean():.1f} ± {gain.std() / draws**0.5:.1f}',
            flush=True,
        )


if __name__ == '__main__':
    main()

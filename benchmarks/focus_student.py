"""A small hybrid that learns what stands out from the wheel of the campaign ``focus``.

It sees photographs without labels: random squares of those that scikit-image ships, most of them of
one object, some of none. ``MapDistillation`` compares its last map, through a linear layer to one
channel, with the teacher's map on the same grid. Prints the correlation of both on four photographs
that it never saw, whole and as random squares; that of the mean map of the training photographs,
which knows no more than that objects are in the middle; and the time of one image in both.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import skimage.data
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor, nn

from vit_plugin.projects.distillation.compared_outputs import outputs_of
from vit_plugin.projects.distillation.distiller import Distiller

HELD_OUT = ('chelsea', 'coffee', 'china', 'flower')
OBJECTS = (
    *('astronaut.png', 'camera.png', 'cell.png', 'clock_motion.png', 'coins.png', 'ihc.png'),
    *('moon.png', 'motorcycle_left.png', 'retina.jpg', 'rocket.jpg'),
)
NO_OBJECT = ('brick.png', 'grass.png', 'gravel.png', 'hubble_deep_field.jpg')
SIDE, STRIDE = 112, 8  # pixels of an image in training, and of a cell of the maps
STUDENT = dict(
    type='vit_plugin.VisionTransformer',
    arch=dict(
        embed_dims=128,
        num_layers=2,
        num_heads=4,
        feedforward_channels=256,
        patch_size=1,
        resnet=dict(stage_depths=(1, 1), width=32),
    ),
    img_size=SIDE,
    out_type='featmap',
)
STEPS, BATCH, RATE, WARM_UP = 250, 8, 1e-3, 25
# Smallest square as a share of the shorter side, and share of the squares with exchanged colors.
SMALLEST, RECOLORED = 0.3, 0.5
SQUARES = 8  # of each photograph that is held out

Normalize = Callable[..., Tensor]  # a photograph (H, W, 3) -> (1, 3, side, side)


class Marks(nn.Module):
    """What the wheel marks, as a backbone of one channel: images (B, 3, H, W) -> (B, 1, h, w)."""

    channels = (1,)

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor]:
        return (F.avg_pool2d(self.network(images), STRIDE),)


def square(photo: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A random square of a photograph (H, W, 3), perhaps mirrored."""
    shorter = min(photo.shape[:2])
    side = int(shorter * random.uniform(SMALLEST, 1))
    top, left = (random.integers(size - side + 1) for size in photo.shape[:2])
    pixels = photo[top : top + side, left : left + side]
    return pixels[:, ::-1] if random.random() < 0.5 else pixels


def batch(photos: list, random: np.random.Generator, normalize: Normalize) -> Tensor:
    """Squares of random photographs for a step, some with their colors exchanged."""
    images = []
    for _ in range(BATCH):
        image = normalize(square(photos[random.integers(len(photos))], random), SIDE)
        recolored = random.random() < RECOLORED
        images.append(image[:, random.permutation(3)] if recolored else image)
    return torch.cat(images)


def train(model: Distiller, photos: list, seed: int, normalize: Normalize) -> None:
    random = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.train().parameters(), RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min((i + 1) / WARM_UP, 1 - i / STEPS)
    )
    for i in range(STEPS):
        loss = model.loss(batch(photos, random, normalize))['loss_map']
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (i + 1) % 50 == 0:
            print(f'step {i + 1}: loss {loss.item():.4f}', flush=True)
    model.eval()


@torch.no_grad()
def marked_by(model: Distiller, images: Tensor, side: int) -> Tensor:
    """What a student marks in images (B, 3, SIDE, SIDE), in the size (B, side, side)."""
    maps = model.losses['map'].project(outputs_of(model, images).map.permute(0, 2, 3, 1))
    return F.interpolate(maps.permute(0, 3, 1, 2), (side, side), mode='bilinear')[:, 0]


def correlations(maps: Tensor, others: Tensor) -> Tensor:
    """Pearson's correlation (B,) of each pair of maps (B, H, W)."""
    maps, others = (x.flatten(1) - x.mean((1, 2))[:, None] for x in (maps, others))
    return F.cosine_similarity(maps, others)


def milliseconds(call: Callable[[], Any], rounds: int = 20) -> float:
    """The median time of this process on its cores, whatever else the machine does."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times))


def draw(rows: list[tuple[np.ndarray, Tensor, Tensor]], file: Path) -> None:
    """Photographs, what the teacher marks, and what the student marks, one above the other."""
    figure = Figure((2.2 * len(rows), 6.6), dpi=80)
    for i, (photo, theirs, mine) in enumerate(rows):
        left = i / len(rows)
        for k, picture in enumerate((photo, theirs, mine)):
            panel = figure.add_axes((left + 0.003, (2 - k) / 3 + 0.004, 0.244, 0.325))
            panel.imshow(picture, cmap='gray', aspect='auto', extent=(0, 1, 0, 1))
            panel.set_axis_off()
    figure.savefig(file, pil_kwargs=dict(quality=85, optimize=True))


def teach(
    network: nn.Module,
    held_out: Mapping[str, np.ndarray],
    normalize: Normalize,
    seed: int,
    out: Path,
) -> None:
    """Train a student, and print and draw what both mark in photographs that it never saw."""
    torch.manual_seed(seed)
    model = Distiller(
        STUDENT,
        teacher=dict(source=dict(type=Marks, network=network), img_size=SIDE),
        losses=[dict(type='vit_plugin.MapDistillation')],
    )
    folder = Path(skimage.data_dir)
    photos = [np.asarray(Image.open(folder / name).convert('RGB')) for name in OBJECTS + NO_OBJECT]
    start = time.process_time()
    train(model, photos, seed, normalize)
    print(f'{STEPS} steps of {BATCH} squares: {time.process_time() - start:.0f} s')
    with torch.no_grad():
        middle = network(torch.cat([normalize(photo) for photo in photos])).mean(0)
    draw(compare(model, network, held_out, middle, normalize), out)
    photo = photos[0]
    image, small = normalize(photo), normalize(photo, SIDE)
    with torch.no_grad():
        times = [milliseconds(lambda pixels=pixels: network(pixels)) for pixels in (image, small)]
    print(f'teacher: {times[0]:.0f} ms an image, {times[1]:.0f} ms at {SIDE} px')
    own = milliseconds(lambda: marked_by(model, small, SIDE))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f'student: {own:.1f} ms an image, {parameters:,} parameters')


@torch.no_grad()
def compare(
    model: Distiller,
    network: nn.Module,
    held_out: Mapping[str, np.ndarray],
    middle: Tensor,
    normalize: Normalize,
) -> list[tuple[np.ndarray, Tensor, Tensor]]:
    """Print the correlations, and return each photograph and what both mark in it.

    Args:
        model, network: the student and its teacher.
        held_out: photographs by their names.
        middle: the mean map of the training photographs (1, H, W).
        normalize: makes a photograph the input of a network.
    """
    random, pictures, found = np.random.default_rng(0), [], []
    for name, photo in held_out.items():
        views = [photo, *(square(photo, random) for _ in range(SQUARES))]
        theirs = network(torch.cat([normalize(view) for view in views]))[:, 0]
        images = torch.cat([normalize(view, SIDE) for view in views])
        mine = marked_by(model, images, theirs.shape[-1])
        pairs = [correlations(maps, theirs) for maps in (mine, middle.expand_as(theirs))]
        found.append([value for scores in pairs for value in (scores[0], scores[1:].mean())])
        print(row(name, found[-1]))
        pictures.append((photo, theirs[0], mine[0]))
    print(row('mean', np.mean(found, axis=0)))
    return pictures


def row(name: str, values: Any) -> str:
    student, squares, middle, of_squares = values
    return (
        f'{name:<8} student {student:.2f}, squares {squares:.2f}; '
        f'mean map {middle:.2f}, squares {of_squares:.2f}'
    )

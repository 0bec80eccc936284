"""Make the model and the images of ``vit-plugin infer --demo``, a detector of drawn shapes.

    python benchmarks demo_model work_dirs/shapes [--only STEP ...]

The steps: ``draw`` draws 600 training and 100 validation scenes, and four more into the package.
``train`` trains a RetinaNet on a small hybrid from scratch by ``vit-plugin train --data``.
``write`` writes it in float16 into the package, as a checkpoint folder in a hub's format and as
ONNX. ``judge`` prints the AP of both on the validation scenes.
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

WIDTH, HEIGHT, SUPERSAMPLING = 320, 240, 2  # pixels of a scene; antialiasing factor of shapes
SHAPES = ('disc', 'square', 'triangle', 'ring')
RADII = (14.0, 44.0)  # pixels of the smallest and the largest shape
TRAIN, VAL, SAMPLES = 600, 100, 4  # numbers of scenes; SAMPLES are shipped
WEIGHTS = 'model.safetensors'
MIN_HALVED_VALUES = 500  # smaller arrays stay in float32
MIN_CONTRAST = 60  # between a shape's color and what it covers, in at least one channel
CFG_OPTIONS = (
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


def background(rng: np.random.Generator) -> np.ndarray:
    """Soft patches of color with noise like a camera's (HEIGHT, WIDTH, 3)."""
    coarse = rng.uniform(30, 226, 3) + rng.uniform(-60, 60, (4, 5, 3))
    soft = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    return soft + rng.normal(0, 6, soft.shape)


def shape_coverage(rng: np.random.Generator, name: str) -> np.ndarray:
    """Draw a shape at a random place. Returns the covered share of each pixel (HEIGHT, WIDTH)."""
    layer = Image.new('L', (WIDTH * SUPERSAMPLING, HEIGHT * SUPERSAMPLING))
    radii = (RADII[0] * SUPERSAMPLING, RADII[1] * SUPERSAMPLING)
    thin = int(rng.integers(4, 9)) * SUPERSAMPLING
    draw_shape(ImageDraw.Draw(layer), name, rng, thin, radii, layer.size)
    return (
        np.asarray(layer, float).reshape(HEIGHT, SUPERSAMPLING, WIDTH, SUPERSAMPLING).mean((1, 3))
    )


def scene(rng: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, list[float]]]]:
    """An image (HEIGHT, WIDTH, 3), and the class and box (x, y, width, height) of each shape.

    Of three to nine shapes, those that overlap others or have too little contrast are left out.
    """
    image, objects = background(rng), []
    taken = np.zeros((HEIGHT, WIDTH), bool)
    for _ in range(rng.integers(3, 10)):
        label = int(rng.integers(len(SHAPES)))
        coverage = shape_coverage(rng, SHAPES[label])
        inside = coverage > 0.5
        if not inside.any() or (inside & taken).any():
            continue
        color = rng.uniform(0, 256, 3)
        if np.abs(color - image[inside].mean(0)).max() < MIN_CONTRAST:
            continue
        shade = np.linspace(*rng.uniform(0.75, 1.15, 2), WIDTH)[:, None]
        image += coverage[..., None] * (color * shade - image)
        taken |= inside
        rows, columns = (np.flatnonzero(inside.any(axis)) for axis in (1, 0))
        sides = np.ptp(columns) + 1, np.ptp(rows) + 1
        objects.append((label, [float(v) for v in (columns[0], rows[0], *sides)]))
    image += rng.normal(0, rng.uniform(0, 8), image.shape)
    return image.clip(0, 255).astype(np.uint8), objects


def write_scenes(folder: Path) -> None:
    """Write training and validation scenes as COCO."""
    for split, number in (('train', TRAIN), ('val', VAL)):
        (folder / split).mkdir(parents=True)
        rng, coco = np.random.default_rng([split == 'val', 79]), CocoFile(SHAPES)
        for i in range(number):
            image, objects = scene(rng)
            Image.fromarray(image).save(folder / split / f'{i:03}.jpg', quality=90)
            coco.add_image(f'{i:03}.jpg', WIDTH, HEIGHT)
            for label, box in objects:
                coco.add(label, box)
        coco.write(folder / f'annotations/instances_{split}.json')


def write_samples() -> None:
    """Draw further scenes into the package."""
    # Seeds begin with 0 for training, 1 for validation and 2 for the samples.
    rng = np.random.default_rng([2, 79])
    DEMO_IMAGES.mkdir(exist_ok=True)
    for i in range(SAMPLES):
        Image.fromarray(scene(rng)[0]).save(DEMO_IMAGES / f'scene_{i + 1}.jpg', quality=85)


def run_vit_plugin(*words: str) -> None:
    """Run ``vit-plugin``."""
    subprocess.run([sys.executable, '-m', 'vit_plugin', *words], check=True)


def halve_weights(source: Path, target: Path) -> None:
    """Store the weights of a graph in float16, though it computes in float32.

    A weight that the safetensors file next to the target also holds becomes a reference to that
    file, so that the package ships it once.
    """
    model = onnx.load(source)
    spans, casts = tensor_spans(target.with_name(WEIGHTS)), []
    for weight in model.graph.initializer:
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
    # The casts come first, since nodes must be sorted topologically.
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    target.write_bytes(model.SerializeToString())


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
        folder, full_onnx = Path(temporary, 'hub'), Path(temporary, 'full.onnx')
        run_vit_plugin('convert', str(run), '--out', str(folder), '--dtype', 'float16')
        for name in ('config.json', WEIGHTS):
            shutil.copy(folder / name, DEMO_CHECKPOINT / name)
        run_vit_plugin('export', str(run), '--out', str(full_onnx))
        halve_weights(full_onnx, DEMO_ONNX)


def judge(data: Path) -> None:
    """Print the AP of both files of the model, and their size."""
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
        run_vit_plugin('train', *words, '--cfg-options', *CFG_OPTIONS)
    if 'write' in args.only:
        write_files(run)
    if 'judge' in args.only:
        judge(data)


if __name__ == '__main__':
    main()

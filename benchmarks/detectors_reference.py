"""Save published detectors with random weights, and the outputs of their authors' code.

``benchmarks/detectors.py`` runs this file in an environment with ``rfdetr`` or ``transformers``,
which need not have this package:

    PYTHON benchmarks/detectors_reference.py KIND NAME FOLDER [HEIGHT,WIDTH ...]

``KIND`` is ``rfdetr`` (``NAME`` is a class of its configs, such as ``Nano`` or ``SegNano``) or
``transformers`` (``NAME`` is ``RfDetr``, ``LwDetr``, ``Detr``, ``ConditionalDetr``,
``DeformableDetr``, ``Eomt`` or ``EomtDinov3``, with the overrides of their config in JSON after a
colon). It saves the model as its library does, and writes ``outputs.pt``. The entry ``sizes`` has a
random image of each size, with the logits, boxes and, if any, masks in float64. The entry
``photographs`` has the predictions of ``rfdetr``, or of a DETR of transformers, for photographs of
scikit-image.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def randomize(model: nn.Module, std: float = 0.02) -> None:
    """Add noise to every parameter, since some begin at zero, which would hide differences."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data += std * noise.to(parameter.dtype)


PHOTOGRAPHS = ('astronaut', 'cat', 'chelsea', 'coffee', 'hubble_deep_field', 'rocket')

# Model of transformers -> its image processor. The others' photographs are not compared.
PROCESSORS = {
    f'{name}Detr': f'{name}DetrImageProcessorPil' for name in ('', 'Conditional', 'Deformable')
}
SIDES = dict(shortest_edge=400, longest_edge=666)  # half of the published sides


def photograph(name: str) -> np.ndarray:
    """Pixels (H, W, 3) in RGB."""
    from skimage import data

    return getattr(data, name)()[..., :3]


def random_images(sizes: list[tuple[int, int]]) -> list[torch.Tensor]:
    """An image (1, 3, height, width) in float64 of each size."""
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(1, 3, *size, generator=generator).double() for size in sizes]


@contextmanager
def doubled() -> Iterator[None]:
    """Replace torch.float32 by float64 within this context.


    Some of the authors' code computes in float32 in a model of any type: Roboflow's the centers of
    its anchors, transformers' the frequencies of its sines, and both resample the position table.
    """
    single, float_ = torch.float32, Tensor.float
    torch.float32, Tensor.float = torch.float64, Tensor.double
    try:
        yield
    finally:
        torch.float32, Tensor.float = single, float_


def save_rfdetr(name: str, folder: Path, sizes: list[tuple[int, int]]) -> dict:
    """Save Roboflow's model in each of its formats. Returns its outputs."""
    from rfdetr import config
    from rfdetr.models.lwdetr import build_model_from_config
    from rfdetr.utilities.tensors import NestedTensor

    name, _, options = name.partition(':')
    config_class = getattr(config, f'RFDETR{name}Config', None)
    if config_class is None:
        from rfdetr_plus.models import detection

        config_class = getattr(detection, f'RFDETR{name}Config')
    settings = config_class(device='cpu', **json.loads(options or '{}'))
    torch.manual_seed(0)
    model = build_model_from_config(settings).eval()
    randomize(model)
    saved = settings.model_dump(mode='json')
    args = argparse.Namespace(
        resolution=settings.resolution, out_feature_indexes=list(settings.out_feature_indexes)
    )
    content = dict(model=model.state_dict(), args=args)
    torch.save(content, folder / 'published.pth')  # the format of 2025
    names = [f'thing {i}' for i in range(settings.num_classes)]
    state = {f'model.{key}': value for key, value in content['model'].items()}
    torch.save(  # the format that its training writes today
        dict(content, state_dict=state, args=dict(class_names=names), model_config=saved),
        folder / 'trained.pth',
    )
    torch.save(content['model'], folder / 'bare.pth')
    model.double()
    found = []
    for image in random_images(sizes or [(settings.resolution,) * 2]):
        mask = torch.zeros(image.shape[0], *image.shape[-2:], dtype=torch.bool)
        with torch.no_grad(), doubled():
            outputs = model(NestedTensor(image, mask))
        found.append(
            dict(
                image=image,
                logits=outputs['pred_logits'],
                boxes=outputs['pred_boxes'],
                masks=outputs.get('pred_masks'),
            )
        )
    predictions = {
        photo: predict_rfdetr(model, settings, photograph(photo)) for photo in PHOTOGRAPHS
    }
    return dict(sizes=found, photographs=predictions)


def predict_rfdetr(model: nn.Module, settings: Any, pixels: np.ndarray) -> dict:
    """The prediction by ``rfdetr``'s steps: resized image, boxes, scores and labels."""
    from rfdetr.models.postprocess import PostProcess
    from torchvision.transforms import functional as F

    image = torch.from_numpy(pixels).permute(2, 0, 1).double() / 255
    image = F.resize(image, [settings.resolution] * 2, antialias=False)
    image = F.normalize(image, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])[None]
    with torch.no_grad(), doubled():
        outputs = model(image)
        found = PostProcess(settings.num_select)(outputs, torch.tensor([pixels.shape[:2]]))
    return dict(found[0], image=image)


def predict_transformers(processor: Any, model: nn.Module, pixels: np.ndarray) -> dict:
    """The prediction by transformers' steps: resized image, boxes, scores, labels; best first."""
    image = processor(pixels, return_tensors='pt')['pixel_values'].double()
    with torch.no_grad(), doubled():
        outputs = model(image)
        (found,) = processor.post_process_object_detection(outputs, -1.0, [pixels.shape[:2]])
    best = found['scores'].argsort(descending=True, stable=True)
    return {name: value[best] for name, value in found.items()} | dict(image=image)


def save_transformers(name: str, folder: Path, sizes: list[tuple[int, int]]) -> dict:
    """Save a model of transformers. Returns its outputs."""
    import transformers

    name, _, options = name.partition(':')
    config = getattr(transformers, f'{name}Config')(**json.loads(options or '{}'))
    task = 'ForUniversalSegmentation' if name.startswith('Eomt') else 'ForObjectDetection'
    torch.manual_seed(0)
    model = getattr(transformers, f'{name}{task}')(config).eval()
    processor = PROCESSORS.get(name)
    randomize(
        model, 0.1 if processor else 0.02
    )  # the queries begin equal, so DETRs need more noise
    model.save_pretrained(folder)
    model.double()
    found = []
    for image in random_images(sizes):
        with torch.no_grad(), doubled():
            outputs = model(pixel_values=image)
        if name.startswith('Eomt'):
            parts = dict(logits=outputs.class_queries_logits, masks=outputs.masks_queries_logits)
        else:
            parts = dict(
                logits=outputs.logits,
                boxes=outputs.pred_boxes,
                masks=getattr(outputs, 'pred_masks', None),
            )
        found.append(dict(parts, image=image))
    if not processor:
        return dict(sizes=found, photographs={})
    steps = getattr(transformers, processor)(size=SIDES)
    steps.save_pretrained(folder)
    predictions = {
        photo: predict_transformers(steps, model, photograph(photo)) for photo in PHOTOGRAPHS
    }
    return dict(sizes=found, photographs=predictions)


def main() -> None:
    warnings.simplefilter('ignore')
    kind, name, folder, *sizes = sys.argv[1:]
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    save = {'rfdetr': save_rfdetr, 'transformers': save_transformers}[kind]
    pairs = [tuple(int(side) for side in size.split(',')) for size in sizes]
    torch.save(save(name, path, pairs), path / 'outputs.pt')


if __name__ == '__main__':
    main()

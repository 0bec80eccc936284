"""Published detectors with random weights, and the outputs of the vendors' own code.

It runs in an environment with ``rfdetr`` or ``transformers``, which this package does not need:

    PYTHON benchmarks/detectors_reference.py KIND NAME FOLDER [HEIGHT,WIDTH ...]

``KIND`` is ``rfdetr`` (``NAME`` is a class of its configs, such as ``Nano`` or ``SegNano``) or
``transformers`` (``NAME`` is ``RfDetr``, ``LwDetr``, ``Detr``, ``ConditionalDetr``,
``DeformableDetr``, ``Eomt`` or ``EomtDinov3``, with the overrides of their config in JSON after a
colon). It writes the file as the vendor's library does, and ``outputs.pt``. Its ``sizes`` are an
image and in float64 the logits and boxes, and the masks if the model has any; its ``photographs``
what ``rfdetr``, or a DETR of transformers, predicts for some of scikit-image's.
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


def randomize(model: nn.Module, size: float = 0.02) -> None:
    """Change every parameter, so that none has a value that makes it ineffective."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data += size * noise.to(parameter.dtype)


PHOTOGRAPHS = ('astronaut', 'cat', 'chelsea', 'coffee', 'hubble_deep_field', 'rocket')

PROCESSORS = {
    f'{name}Detr': f'{name}DetrImageProcessorPil' for name in ('', 'Conditional', 'Deformable')
}
SIDES = dict(shortest_edge=400, longest_edge=666)  # half of the published sides


def photograph(name: str) -> np.ndarray:
    """Pixels (H, W, 3) in RGB."""
    from skimage import data

    return getattr(data, name)()[..., :3]


def images(sizes: list[tuple[int, int]]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(1, 3, *size, generator=generator).double() for size in sizes]


@contextmanager
def doubled() -> Iterator[None]:
    """Replace float32 by float64, so that results can be compared to the last digits.

    Roboflow's code has the centers of its anchors in float32 and transformers' the frequencies of
    its sines, in a model of any type; both resample the position table in float32.
    """
    single, float_ = torch.float32, Tensor.float
    torch.float32, Tensor.float = torch.float64, Tensor.double
    try:
        yield
    finally:
        torch.float32, Tensor.float = single, float_


def of_rfdetr(name: str, folder: Path, sizes: list[tuple[int, int]]) -> dict:
    """Roboflow's own model, saved as by its training code."""
    from rfdetr import config
    from rfdetr.models.lwdetr import build_model_from_config
    from rfdetr.utilities.tensors import NestedTensor

    name, _, options = name.partition(':')
    kind = getattr(config, f'RFDETR{name}Config', None)
    if kind is None:
        from rfdetr_plus.models import detection

        kind = getattr(detection, f'RFDETR{name}Config')
    settings = kind(device='cpu', **json.loads(options or '{}'))
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
    for image in images(sizes or [(settings.resolution,) * 2]):
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
    shown = {photo: predicted(model, settings, photograph(photo)) for photo in PHOTOGRAPHS}
    return dict(sizes=found, photographs=shown)


def predicted(model: nn.Module, settings: Any, pixels: np.ndarray) -> dict:
    """The outputs by ``rfdetr``'s steps: the resized image, boxes, scores and rows of classes."""
    from rfdetr.models.postprocess import PostProcess
    from torchvision.transforms import functional as F

    image = torch.from_numpy(pixels).permute(2, 0, 1).double() / 255
    image = F.resize(image, [settings.resolution] * 2, antialias=False)
    image = F.normalize(image, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])[None]
    with torch.no_grad(), doubled():
        outputs = model(image)
        found = PostProcess(settings.num_select)(outputs, torch.tensor([pixels.shape[:2]]))
    return dict(found[0], image=image)


def shown_by(processor: Any, model: nn.Module, pixels: np.ndarray) -> dict:
    """The outputs by transformers' steps: the resized image, boxes, scores and rows, best first."""
    image = processor(pixels, return_tensors='pt')['pixel_values'].double()
    with torch.no_grad(), doubled():
        outputs = model(image)
        (found,) = processor.post_process_object_detection(outputs, -1.0, [pixels.shape[:2]])
    best = found['scores'].argsort(descending=True, stable=True)
    return {name: value[best] for name, value in found.items()} | dict(image=image)


def of_transformers(name: str, folder: Path, sizes: list[tuple[int, int]]) -> dict:
    """A model of transformers, saved by it."""
    import transformers

    name, _, options = name.partition(':')
    config = getattr(transformers, f'{name}Config')(**json.loads(options or '{}'))
    task = 'ForUniversalSegmentation' if name.startswith('Eomt') else 'ForObjectDetection'
    if folder.name.startswith('seg'):
        task = 'ForInstanceSegmentation'
    torch.manual_seed(0)
    model = getattr(transformers, f'{name}{task}')(config).eval()
    processor = PROCESSORS.get(name)
    randomize(model, 0.1 if processor else 0.02)  # queries start alike
    model.save_pretrained(folder)
    model.double()
    found = []
    for image in images(sizes):
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
    shown = {photo: shown_by(steps, model, photograph(photo)) for photo in PHOTOGRAPHS}
    return dict(sizes=found, photographs=shown)


def main() -> None:
    warnings.simplefilter('ignore')
    kind, name, folder, *sizes = sys.argv[1:]
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    make = {'rfdetr': of_rfdetr, 'transformers': of_transformers}[kind]
    pairs = [tuple(int(side) for side in size.split(',')) for size in sizes]
    torch.save(make(name, path, pairs), path / 'outputs.pt')


if __name__ == '__main__':
    main()

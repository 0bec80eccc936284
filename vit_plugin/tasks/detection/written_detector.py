"""Write a trained detector as a transformers folder, if its project supports that."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor

from vit_plugin.deploy.hub.hub_folder import HubFolder, OutputFunction
from vit_plugin.deploy.hub.libraries import LIBRARIES
from vit_plugin.deploy.hub.transformers_fields import encoder_config, transformers_with_classes
from vit_plugin.deploy.hub.written_task import WrittenTask, read_by_vit_plugin
from vit_plugin.errors import ConfigError
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.project import declared_rows
from vit_plugin.weights import FORMATS, recognize


def detector_folders(
    trained: TrainedModel, library: str, pixels: Mapping[str, Any]
) -> Iterator[HubFolder]:
    """The folder of the detector, by the first project that can write it; see :class:`WrittenTask`.

    It is the same for any preprocessing, so ``pixels`` is not used.

    Raises:
        ConfigError: if the library has no such detector.
    """
    if library != 'hf':
        raise ConfigError(f'{LIBRARIES[library].name} has no detection models')
    model, section = trained.model, trained.cfg.model.to_dict()
    for writer in declared_rows('folders').values():
        written = resolve_name(writer)(model, section, encoder_config)
        if written is not None:
            config, weight_format = written
            # No array has an axis for the attention heads, so their number does not matter.
            weights, unnamed = FORMATS[weight_format].export(
                dict(recognize(model.state_dict())), heads=1
            )
            if unnamed:
                raise ConfigError(f'transformers has no name for {unnamed[0]}')
            classes = trained.classes or [str(i) for i in range(model.bbox_head.num_classes)]
            yield HubFolder(transformers_with_classes(config, classes), weights)
            return
    head = type(getattr(model, 'bbox_head', model)).__name__
    raise ConfigError(f'a detector with a {head} cannot be written for another library')


@torch.no_grad()
def compute_boxes(trained: TrainedModel, images: Tensor) -> Tensor:
    """Logits and boxes (N, Q, num_classes + 4) of normalized images, in the dtype of the images.

    The images are in float64, see :func:`_image_of_size`: in float32, rounding would change which
    proposals are selected.
    """
    model = deepcopy(trained.model).to(images.dtype).eval()
    outputs = model.bbox_head(model.extract_feat(images))
    return torch.cat((outputs.logits[-1], outputs.boxes[-1].to(outputs.logits)), dim=-1)


def boxes_by_transformers(folder: Path, config: Mapping[str, Any]) -> OutputFunction | None:
    """The function that transformers computes with a folder; None if it is not installed.

    Its outputs are those of :func:`compute_boxes`.

    Raises:
        ConfigError: if a weight has no parameter of its shape in transformers' model.
    """
    try:
        from transformers import AutoModelForObjectDetection
    except ImportError:
        return None
    model, loading_info = AutoModelForObjectDetection.from_pretrained(
        folder, output_loading_info=True, ignore_mismatched_sizes=True
    )
    if wrong := [
        str(key) for name in ('unexpected', 'mismatched') for key in loading_info[f'{name}_keys']
    ]:
        raise ConfigError(f'transformers has no place for {min(wrong)}')

    def outputs(images: Tensor) -> Tensor:
        result = model.to(images.dtype)(pixel_values=images)
        return torch.cat((result.logits, result.pred_boxes), dim=-1)

    return outputs


def _image_of_size(trained: TrainedModel, size: Sequence[int]) -> Tensor:
    """A random image in float64, for which the outputs are compared."""
    return torch.randn(1, trained.model.backbone.in_channels, *size, dtype=torch.float64)


WRITTEN_DETECTOR = WrittenTask(
    folders=detector_folders,
    outputs=compute_boxes,
    images=_image_of_size,
    readers={'hf': (read_by_vit_plugin, boxes_by_transformers)},
    processor='RTDetrImageProcessor',  # all real-time detectors share it
)

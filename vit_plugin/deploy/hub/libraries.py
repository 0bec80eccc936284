"""The same model in timm and in transformers, where they have its architecture.

A library's config is written by ours, from the sizes of the model. Whether it is the same model is
not derived but tried: the folder is read, and its outputs are compared.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from vit_plugin.deploy.deployed_module import relative_difference
from vit_plugin.inference.load import load
from vit_plugin.inference.trained_model import TrainedModel

from .hub_folder import PLAIN_STEM, HubFolder, Outputs, outputs_of
from .timm_folder import read_by_timm, timm_folders
from .transformers_folder import read_by_transformers, transformers_folders

# Shares of the largest output by which others may differ: of float32, and where more is rounded,
# as in timm's hybrids, whose eps of their own a deep ResNet makes more of.
TOLERANCE, LOOSE = 1e-4, 1e-2


class Library(NamedTuple):
    """A library that reads a folder of the hub.

    Attributes:
        name: its name on the hub.
        folders: model and pixels -> the folders that may be the same model, the likeliest first.
        readers: the folder and its config -> outputs. None where the reader is not installed.
        example: how the folder is read, in Python.
    """

    name: str
    folders: Callable[[TrainedModel, Mapping[str, Any]], Iterator[HubFolder]]
    readers: tuple[Callable[[Path, Mapping[str, Any]], Outputs | None], ...]
    example: str


def read_by_ours(folder: Path, config: Mapping[str, Any]) -> Outputs:
    """What this package computes with a folder of another library."""
    classifies = 'id2label' in config
    trained = load(folder, device='cpu', classify=classifies)
    return lambda images: outputs_of(trained, images)


LIBRARIES = {
    'timm': Library(
        'timm',
        timm_folders,
        (read_by_timm,),
        "import timm\n\nmodel = timm.create_model('{timm}', pretrained=True).eval()",
    ),
    'hf': Library(
        'transformers',
        transformers_folders,
        (read_by_ours, read_by_transformers),
        "from transformers import pipeline\n\nprint(pipeline('{task}', '{name}')('photo.jpg'))",
    ),
}


@torch.no_grad()
def difference(trained: TrainedModel, outputs: Outputs) -> float:
    """The largest difference of a library's outputs from the model's, relative to the largest.

    Images are random ones of the native size.
    """
    backbone = trained.model.backbone
    images = torch.randn(4, backbone.in_channels, *backbone.img_size)
    return relative_difference(outputs(images), outputs_of(trained, images))


def tolerance_of(trained: TrainedModel, dtype: str | None) -> float:
    """How far outputs may be apart, as a share of the largest.

    Args:
        trained: the model.
        dtype: that of the weights that are written, if it is another.
    """
    is_plain = type(trained.model.backbone.patch_embed).__name__ == PLAIN_STEM
    return TOLERANCE if is_plain and dtype in (None, 'float32') else LOOSE

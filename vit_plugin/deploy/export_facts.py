"""The metadata of an exported file, with which it predicts without its checkpoint.

The code calls this metadata facts, see :class:`~vit_plugin.deploy.exported_model.ExportFacts`.
"""

import json
from collections.abc import Sequence
from typing import Any

from vit_plugin.inference.answered_task import is_multi_label
from vit_plugin.inference.prepared_image import takes_rgb

from .input_sizes import InputSizes, padding_of
from .pipeline_steps import PipelineStep
from .sized_steps import adapt_to_size


def facts_of(trained: Any, sizes: InputSizes, steps: Sequence[PipelineStep]) -> str:
    """The metadata of a model's file, as JSON, with which ``ExportedModel`` runs it.

    Args:
        trained: the model.
        sizes: the sizes of images that the file takes.
        steps: the steps of the test pipeline, see
            :func:`~vit_plugin.deploy.pipeline_steps.pixel_steps_of`.
    """
    model = trained.model
    decode_head: Any = getattr(model, 'decode_head', None)
    backbone = getattr(model, 'backbone', model)
    stem, channels = getattr(backbone, 'patch_embed', None), getattr(backbone, 'in_channels', 3)
    facts = dict(
        classes=trained.classes,
        multi_label=is_multi_label(model),
        align_corners=bool(getattr(decode_head, 'align_corners', False)),
        **trained.prediction_class.facts_of(model),
        rgb=takes_rgb(model.data_preprocessor),
        patch=getattr(stem, 'stride', 1),
        slices=trained.slices,
        usual=trained.training_size,
        steps=adapt_to_size(steps, sizes, fill_of(model, channels)),
    )
    # OpenCV's JSON reader, in programs of docs/deployment.md, does not accept null.
    return json.dumps({key: value for key, value in facts.items() if value is not None})


def fill_of(model: Any, channels: int = 3) -> list[float]:
    """The pixel (C) that a model pads images with, in the pipeline's order of channels.

    Args:
        model: the model.
        channels: number of channels of the images.
    """
    preprocessor, value = model.data_preprocessor, padding_of(model).value
    mean: Any = getattr(preprocessor, 'mean', None)
    fill = [float(value)] * channels
    if mean is not None:
        fill = (mean + value * preprocessor.std).flatten().tolist()
    return fill[::-1] if takes_rgb(preprocessor) else fill

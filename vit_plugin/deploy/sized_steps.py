"""The steps of a test pipeline for a file that takes images of other sizes than the pipeline."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vit_plugin.files.resizing import rounded_up

from .input_sizes import InputSizes
from .pipeline_steps import PipelineStep, resize_step

OPEN_SIDE_RATIO = 2  # a scale with a larger aspect ratio only limits the shorter side


def last_resize(steps: Sequence[PipelineStep]) -> tuple[str, list[Any]]:
    """The rule and the arguments of the resize that ends a pipeline, ``'none'`` without one."""
    rule, *arguments = steps[-1].get('resize', ['none']) if steps else ['none']
    return str(rule), arguments


def size_of_training(
    steps: Sequence[PipelineStep], sizes: InputSizes, model: Any
) -> tuple[int, int]:
    """Height and width for a file if the sizes of the test pipeline depend on the images.

    Args:
        steps: the steps of the test pipeline.
        sizes: the sizes of the test.
        model: a model with a ``backbone``, whose ``img_size`` is that of its training.
    """
    rule, arguments = last_resize(steps)
    height, width = model.backbone.img_size
    if rule == 'target' or (rule == 'scale' and not has_open_side(*arguments)):
        width, height = map(int, arguments[:2])
    unit = math.lcm(model.backbone.strides[-1], sizes.padding.unit)
    rows, columns = (rounded_up(side, unit) for side in sizes.padding.padded_size((height, width)))
    return rows, columns


def has_open_side(width: float, height: float) -> bool:
    """True if a scale only limits the shorter side, such as MMSegmentation's (2048, 512)."""
    return max(width, height) > OPEN_SIDE_RATIO * min(width, height)


def scale_in(size: tuple[int, int], width: float, height: float) -> tuple[float, float]:
    """The scale (width, height) of a pipeline, enlarged or reduced to this height and width."""
    ratio = min(size[1] / width, size[0] / height)
    if has_open_side(width, height):
        ratio = min(size) / min(width, height)
    return width * ratio, height * ratio


def adapt_to_size(
    steps: Sequence[PipelineStep], sizes: InputSizes, fill: Sequence[float]
) -> list[PipelineStep]:
    """Adapt the steps of a test pipeline to the sizes of a file.

    Args:
        steps: the steps of the pipeline.
        sizes: the sizes of the file.
        fill: see :func:`~vit_plugin.deploy.export_facts.fill_of`.
    """
    if sizes.from_test_pipeline or sizes.fixed_size is None:
        return [*steps, *_padding(sizes, fill)]
    width, height = sizes.fixed_size[::-1]
    last: PipelineStep = next((step for step in reversed(steps) if 'resize' in step), {})
    method = dict(
        interpolation=last.get('interpolation', 'bilinear'), backend=last.get('backend', 'cv2')
    )
    rule, arguments = last_resize(steps)
    if rule in ('scale', 'target', 'edge'):
        # The scale of the pipeline follows the orientation of the image; the size of the file does
        # not.
        if rule == 'scale':
            scale = scale_in(sizes.fixed_size, *arguments)
            resize = resize_step('scale', *scale, width, height, **method)
        else:
            # 1 is for a size within the target, see `target_size`.
            resize = resize_step('target', width, height, 1, **method)
        return [*steps[:-1], resize, dict(pad=[width, height], fill=list(fill))]
    crop = steps[-1] if steps else {}
    if last and crop.get('crop', [width, height]) != [width, height]:
        resize = _resize_before_crop(last['resize'], crop['crop'], (width, height), method)
        return [*steps[: steps.index(last)], resize, dict(crop, crop=[width, height])]
    if rule == 'exact':
        steps = steps[:-1]  # two resizes would blur the image
    return [*steps, resize_step('exact', width, height, **method)]


def _padding(sizes: InputSizes, fill: Sequence[float]) -> list[PipelineStep]:
    """The step that pads images like the preprocessor, if it does."""
    unit, min_size, _ = sizes.padding
    if not sizes.padding.adds_pixels:
        return []
    # A file of one size states that size, for programs such as those of docs/deployment.md.
    pad: PipelineStep = dict(pad=list((sizes.fixed_size or min_size)[::-1]), fill=list(fill))
    if sizes.fixed_size is None:
        pad['unit'] = unit
    return [pad]


def _resize_before_crop(
    resize: Sequence[Any], crop: Sequence[int], new_crop: tuple[int, int], method: Mapping[str, str]
) -> PipelineStep:
    """The resize before a crop of another size, so that the crop shows the same part of the image.

    The ratio of the resized side to the crop is kept.

    Args:
        resize: the rule and the arguments of the pipeline's resize.
        crop, new_crop: width and height of the pipeline's crop, and of the file's.
        method: interpolation and backend.
    """
    rule, *sides = resize
    around = 0  # for a size around the target
    if rule == 'target':
        around = sides.pop()
    # An edge is compared with the shorter side of the crop, a height with its height.
    cropped_side = min(crop) if rule == 'edge' else crop[1]
    ratio = sides[-1] / cropped_side
    return resize_step('target', *(side * ratio for side in new_crop), around, **method)

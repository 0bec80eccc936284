"""``train --augment NAME``: transforms that mix several training images, and when each ends."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from vit_plugin.arguments.fields import Pipeline, Section

Scale = tuple[int, int]  # the width and height that images are resized to
MIX_UP_SCALES = (0.8, 1.25)  # range of the scale of an image that is mixed into another


class Phase(NamedTuple):
    """A phase of a training.

    Attributes:
        end: the share of the epochs after which it ends.
        before_resize, after_resize: the transforms before and after an image is resized.
    """

    end: float
    before_resize: tuple[Callable[[Scale], Section], ...] = ()
    after_resize: tuple[Callable[[Scale], Section], ...] = ()


def _mix(*transforms: Section) -> Section:
    """Apply all these transforms to half of the samples."""
    return dict(type='vit_plugin.RandomMix', transforms=[*transforms], prob=0.5)


def _mosaic(scale: Scale) -> Section:
    """Mosaic of four images, cropped to the size of one, and scaled by 0.5 to 1.5.

    MMDetection's YOLOX has the same for all images, plus rotation and shear.
    """
    border = (-(scale[0] // 2), -(scale[1] // 2))
    affine = dict(type='mmdet.RandomAffine', max_rotate_degree=0.0, max_shear_degree=0.0)
    affine |= dict(scaling_ratio_range=(0.5, 1.5), border=border)
    return _mix(dict(type='mmdet.Mosaic', img_scale=scale), affine)


def _quarters(scale: Scale) -> Section:
    """Four images at half width and height in the place of one (DEIM, arXiv:2412.04234)."""
    return _mix(dict(type='mmdet.Mosaic', img_scale=(scale[0] // 2, scale[1] // 2)))


def _mix_up(scale: Scale) -> Section:
    # MixUp flips if a random number is above flip_ratio, so that 1.0 disables it. A later transform
    # flips, unless left and right matter.
    return _mix(
        dict(type='mmdet.MixUp', img_scale=scale, ratio_range=MIX_UP_SCALES, flip_ratio=1.0)
    )


def _copy_blend(scale: Scale) -> Section:
    return _mix(dict(type='vit_plugin.CopyBlend'))


# A value of --augment -> the phases of a training. In DEIMv2-S they end after 64 and 120 of 132
# epochs.
PHASES = {
    'mosaic': (Phase(end=0.9, before_resize=(_mosaic,)),),
    'dense-o2o': (
        Phase(end=0.5, before_resize=(_quarters,), after_resize=(_mix_up, _copy_blend)),
        Phase(end=0.9, after_resize=(_copy_blend,)),
    ),
}
# Removes objects that were cut off at a border, and keeps images without objects.
FILTER = dict(type='FilterAnnotations', min_gt_bbox_wh=(1, 1), keep_empty=False)


class Mixing(NamedTuple):
    """The successive pipelines of a training, after the steps that load an image.

    Attributes:
        pipelines: one for each phase; the last one mixes nothing.
        ends: the epochs at which all but the last phase end.
    """

    pipelines: Sequence[Pipeline]
    ends: Sequence[int]

    @property
    def hooks(self) -> list[Section]:
        """MMDetection's hooks that switch the pipelines."""
        return [
            dict(type='PipelineSwitchHook', switch_epoch=end, switch_pipeline=pipeline)
            for end, pipeline in zip(self.ends, self.pipelines[1:], strict=True)
        ]

    @property
    def summary(self) -> str:
        """A sentence about the phases."""
        if not self.ends[-1]:
            return ' --augment mixes no images in so few epochs; give more --epochs.'
        ends = ' and '.join(map(str, dict.fromkeys(filter(None, self.ends))))
        return f' Half of the samples mix several images; that changes after epoch {ends}.'


def plan_mixing(
    name: str, epochs: int, scale: Scale, resize_steps: Pipeline, final_steps: Pipeline
) -> Mixing:
    """The pipelines of a value of ``--augment``.

    Args:
        name: a key of :data:`PHASES`.
        epochs: length of the training in epochs.
        scale: see :data:`Scale`.
        resize_steps, final_steps: the transforms of the last pipeline, up to the resize and after
            it.
    """

    def build(steps: Sequence[Callable[[Scale], Section]]) -> Pipeline:
        return [step(scale) for step in steps]

    phases = PHASES[name]
    pipelines = [
        [
            *build(phase.before_resize),
            *resize_steps,
            *build(phase.after_resize),
            FILTER,
            *final_steps,
        ]
        for phase in phases
    ]
    ends = [int(phase.end * epochs) for phase in phases]
    return Mixing([*pipelines, [*resize_steps, *final_steps]], ends)

"""What the recipes of MMSegmentation's models share."""

from typing import ClassVar

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts

from .model_recipe import ModelRecipe
from .starting_point import SMALL_SIDE


class MapRecipe(ModelRecipe):
    """Recipe for images and maps of the same size, by MMSegmentation."""

    packages = ('mmseg',)
    # The maps of the last small hybrid begin at a stride of 4 and miss thin shapes
    # (docs/results.md).
    small_rows = (SMALL_SIDE, SMALL_SIDE)
    changes: ClassVar = dict(scratch=dict(rate=1e-3))
    runtime = '_base_/mmseg_runtime.py'
    pixels_of_bands: ClassVar = dict(bgr_to_rgb=False)
    sections: ClassVar = dict(log_processor=dict(by_epoch=True))

    def segmentor(self, kind: str, facts: ModelFacts) -> Section:
        """The section ``model`` for MMSegmentation."""
        pixels = dict(
            type='SegDataPreProcessor',
            **self.start.normalization,
            bgr_to_rgb=True,
            **self.padding,
        )
        model = dict(type=kind, train_cfg=dict(), test_cfg=dict(mode='whole'))
        return model | self.built(facts, pixels)

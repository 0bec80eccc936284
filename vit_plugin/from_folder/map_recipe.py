"""What the recipes for dense prediction with MMSegmentation share (segmentation, depth)."""

from typing import ClassVar

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts

from .model_recipe import ModelRecipe
from .small_hybrids import SMALL_SIDE


class MapRecipe(ModelRecipe):
    """Base of the recipes for dense prediction with MMSegmentation (segmentation, depth).

    The data are images and per-pixel targets of the same size. Attributes: see
    :class:`~.task_recipe.TaskRecipe` and :class:`~.model_recipe.ModelRecipe`.
    """

    packages = ('mmseg',)
    # Never the largest row of SMALL_HYBRIDS: its finest feature map has stride 4, which misses
    # thin shapes (docs/results.md).
    hybrid_range = (SMALL_SIDE, SMALL_SIDE)
    schedule_overrides: ClassVar = dict(scratch=dict(rate=1e-3))
    runtime = '_base_/mmseg_runtime.py'
    multispectral_preprocessor: ClassVar = dict(bgr_to_rgb=False)
    task_sections: ClassVar = dict(log_processor=dict(by_epoch=True))

    def segmentor(self, type_name: str, facts: ModelFacts) -> Section:
        """The section ``model`` for MMSegmentation.

        Args:
            type_name: the class of the segmentor.
            facts: the facts of the data and backbone that the model is built from.
        """
        preprocessor = dict(
            type='SegDataPreProcessor',
            **self.start.normalization,
            bgr_to_rgb=True,
            **self.padding,
        )
        model = dict(type=type_name, train_cfg=dict(), test_cfg=dict(mode='whole'))
        return model | self.complete_model(facts, preprocessor)

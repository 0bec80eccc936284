"""Panoptic segmentation: each pixel belongs to a thing, or to a class of stuff."""

from vit_plugin.task import Task

TASK = Task(
    position=5,
    recipe='vit_plugin.tasks.panoptic.panoptic_recipe:PanopticRecipe',
    models={'mask2former': 'vit_plugin.from_folder.mask2former:MASK2FORMER_INSTANCES'},
    extends=('detection', 'segmentation'),
    outcomes='vit_plugin.tasks.panoptic.panoptic_outcomes:PanopticOutcomes',
    prediction='vit_plugin.tasks.panoptic.panoptic_prediction:PanopticPrediction',
)

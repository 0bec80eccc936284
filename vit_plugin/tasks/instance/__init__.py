"""Instance segmentation: the pixels of each object, and its class."""

from vit_plugin.task import Task

TASK = Task(
    position=3,
    recipe='vit_plugin.tasks.instance.instance_recipe:InstanceRecipe',
    models={
        'mask-rcnn': 'vit_plugin.tasks.instance.mask_models:MASK_RCNN',
        'mask2former': 'vit_plugin.from_folder.mask2former:MASK2FORMER_INSTANCES',
    },
    flags=('balance', 'tiles'),
    extends=('detection',),
    outcomes='vit_plugin.tasks.detection.instance_outcomes:InstanceOutcomes',
    prediction='vit_plugin.tasks.detection.box_prediction:BoxPrediction',
)

"""Semantic segmentation: the class of each pixel."""

from vit_plugin.task import Task

TASK = Task(
    position=4,
    recipe='vit_plugin.tasks.segmentation.segmentation_recipe:SegmentationRecipe',
    models={
        'segformer': 'vit_plugin.tasks.segmentation.map_models:SEGFORMER',
        'upernet': 'vit_plugin.tasks.segmentation.map_models:UPERNET',
        'mask2former': 'vit_plugin.tasks.segmentation.map_models:MASK2FORMER_MAPS',
        'linear': 'vit_plugin.tasks.segmentation.map_models:LINEAR_MAPS',
    },
    outcomes='vit_plugin.tasks.segmentation.map_outcomes:MapOutcomes',
    labels='vit_plugin.tasks.segmentation.pixel_labels:PIXEL_LABELS',
    prediction='vit_plugin.tasks.segmentation.map_prediction:MapPrediction',
    framework='mmseg',
    deployed={
        ('decode_head', ''): 'vit_plugin.tasks.segmentation.deployed_segmentor:DeployedSegmentor',
    },
    hub='image-segmentation',
    ability='says the class of every pixel of a picture',
)

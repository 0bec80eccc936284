"""Detection: a box around each object, and its class."""

from vit_plugin.task import Task

TASK = Task(
    position=2,
    recipe='vit_plugin.tasks.detection.detection_recipe:DetectionRecipe',
    models={
        'retinanet': 'vit_plugin.tasks.detection.box_models:RETINANET',
        'faster-rcnn': 'vit_plugin.tasks.detection.box_models:FASTER_RCNN',
        'vitdet': 'vit_plugin.tasks.detection.box_models:VITDET_DETECTOR',
        'dino': 'vit_plugin.tasks.detection.box_models:DINO_DETECTOR',
    },
    flags=('balance', 'augment', 'tiles'),
    outcomes='vit_plugin.tasks.detection.instance_outcomes:InstanceOutcomes',
    labels='vit_plugin.tasks.detection.object_labels:OBJECT_LABELS',
    prediction='vit_plugin.tasks.detection.box_prediction:BoxPrediction',
    framework='mmdet',
    deployed={
        ('bbox_head', 'RetinaHead'): (
            'vit_plugin.tasks.detection.deployed_retinanet:DeployedRetinaNet'
        ),
    },
    hub='object-detection',
    written='vit_plugin.tasks.detection.written_detector:WRITTEN_DETECTOR',
    ability='finds objects in a picture',
)

"""Depth: the distance of each pixel. Projects provide the models."""

from vit_plugin.task import Option, Task

TASK = Task(
    position=6,
    recipe='vit_plugin.tasks.depth.depth_recipe:DepthRecipe',
    options={
        'depth_scale': Option(
            kind=float,
            minimum=1e-9,
            metavar='METERS',
            help='meters of a value of 1 in maps of depth; default: 0.001 in PNG '
            "(KITTI's: 1 / 256), 1 in .npy and .tiff",
        )
    },
    outcomes='vit_plugin.tasks.depth.depth_outcomes:DepthOutcomes',
    labels='vit_plugin.tasks.depth.depth_labels:DEPTH_LABELS',
    prediction='vit_plugin.tasks.depth.depth_prediction:DepthPrediction',
    heads=(('decode_head', 'DepthHead'),),
    deployed={
        ('decode_head', 'DepthHead'): 'vit_plugin.tasks.depth.deployed_depth:DeployedDepth',
    },
    hub='depth-estimation',
    ability='says how far away every pixel of a picture is',
)

"""Depth: how far away each pixel of an image is. Its models are those of projects."""

from vit_plugin.task import Option, Task

TASK = Task(
    place=6,
    recipe='vit_plugin.tasks.depth.depth_recipe:DepthRecipe',
    options={
        'depth_scale': Option(
            float,
            1e-9,
            'METERS',
            "meters of a value of 1 in maps of depth; default: 0.001 in PNG (KITTI's: 1 / 256), 1 "
            'in .npy and .tiff',
        )
    },
)

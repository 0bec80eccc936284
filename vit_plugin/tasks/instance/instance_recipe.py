"""Recipe of a model of instances for a folder of images with polygons of objects."""

from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe


class InstanceRecipe(DetectionRecipe):
    """Recipe of a training on polygons of objects."""

    metrics = ('bbox', 'segm')
    with_masks = True

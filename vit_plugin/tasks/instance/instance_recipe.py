"""Recipe of instance segmentation for a folder of images with polygons."""

from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe


class InstanceRecipe(DetectionRecipe):
    """Recipe for images with polygons."""

    # Overrides attributes of DetectionRecipe and TaskRecipe, which describe them.
    monitor = 'coco/segm_mAP'
    metrics = ('bbox', 'segm')
    with_masks = True

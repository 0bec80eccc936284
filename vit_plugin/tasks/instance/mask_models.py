"""Models of the task instance with MMDetection's own heads, as :class:`TaskModel`."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel
from vit_plugin.tasks.detection.box_models import rcnn


def _mask_rcnn(facts: ModelFacts) -> Section:
    return rcnn(facts, *facts.pyramid(facts.channels, facts.levels), with_masks=True)


MASK_RCNN = TaskModel('a Mask R-CNN', _mask_rcnn, base='mask-rcnn_r50_fpn.py', allows_wrapped=True)

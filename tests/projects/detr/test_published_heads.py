"""The heads of published DETRs train with the losses of their papers."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from mmengine.structures import InstanceData

from vit_plugin.projects.detr.published_heads import PublishedDETRHead

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks


def test_class_loss_of_detr_is_the_weighted_mean():
    """As in DETR's code: "no object" has weight 0.1, and the sum is divided by all weights."""
    torch.manual_seed(0)
    head = PublishedDETRHead(3, num_queries=5, embed_dims=8)
    logits, boxes = torch.randn(2, 5, 4), torch.rand(2, 5, 4)
    objects = [
        InstanceData(
            labels=torch.tensor([1, 2]),
            bboxes=torch.tensor([[0.0, 0.0, 10.0, 20.0], [5.0, 5.0, 30.0, 30.0]]),
        ),
        InstanceData(labels=torch.tensor([0]), bboxes=torch.tensor([[10.0, 10.0, 20.0, 30.0]])),
    ]
    metas = [dict(img_shape=(40, 40))] * 2
    labels = torch.cat(head.get_targets([*logits], [*boxes], objects, metas)[0])
    loss, *_ = head.loss_by_feat_single(logits, boxes, objects, metas)
    weights = torch.tensor([1.0, 1.0, 1.0, 0.1])
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels, weights)
    torch.testing.assert_close(loss.squeeze(), expected)

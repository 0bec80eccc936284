"""A trained RetinaNet as a graph for export."""

import torch
from torch import Tensor, nn
from torchvision.ops import nms

from vit_plugin.errors import ConfigError
from vit_plugin.tasks.detection.deployed_detectors import DeployedBoxes, clipped


class DeployedRetinaNet(DeployedBoxes):
    """A detector with MMDetection's ``RetinaHead`` and torchvision's NMS.

    Images with fewer boxes than ``max_per_img`` are padded with score 0.

    Raises:
        ConfigError: for another kind of scores or NMS.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(model, dtype)
        head, test_cfg = model.bbox_head, model.bbox_head.test_cfg
        nms_cfg = {'type': 'nms', **test_cfg['nms']}
        nms_kind = {name: nms_cfg[name] for name in nms_cfg if name != 'iou_threshold'}
        for field, value, wanted in (
            ('bbox_head.loss_cls.use_sigmoid', head.use_sigmoid_cls, True),
            ('test_cfg.nms', nms_kind, dict(type='nms')),
            ('test_cfg.min_bbox_size', max(test_cfg.get('min_bbox_size', 0), 0), 0),
        ):
            if value != wanted:
                raise ConfigError(
                    f'model.{field}: {value} cannot be exported; export with {wanted}, by '
                    '--cfg-options, and do the rest outside.'
                )

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        head, test_cfg = self.model.bbox_head, self.model.bbox_head.test_cfg
        logits, deltas = head(self.features(images, sizes))
        anchors = head.prior_generator.grid_priors(
            [level.shape[-2:] for level in logits], device=images.device
        )
        candidates = []
        for level, delta, anchor in zip(logits, deltas, anchors, strict=True):
            # (B, positions * anchors * classes).
            scores = level.float().permute(0, 2, 3, 1).flatten(1).sigmoid()
            scores, best = _highest(scores, test_cfg.get('nms_pre', -1))
            # `//` would add comparisons of signs to the graph, and few runtimes take booleans.
            rows = torch.div(best, head.num_classes, rounding_mode='trunc')  # rows of deltas
            # Only channels are divided: sympy takes minutes to divide a dynamic number of
            # positions.
            delta = delta.float().permute(0, 2, 3, 1).unflatten(3, (delta.shape[1] // 4, 4))
            delta = delta.flatten(1, 3)  # (B, positions * anchors, 4)
            delta = delta.gather(1, rows[..., None].expand(-1, -1, 4))
            boxes = head.bbox_coder.decode(
                anchor[rows].flatten(0, 1), delta.flatten(0, 1)
            ).unflatten(0, rows.shape)
            candidates.append((clipped(boxes, sizes), scores, best - rows * head.num_classes))
        boxes, scores, labels = (torch.cat(parts, dim=1) for parts in zip(*candidates, strict=True))
        sides = boxes[..., 2:] - boxes[..., :2]
        if test_cfg.get('min_bbox_size', -1) == 0:
            scores = scores * (sides.amin(-1) > 0)
        scores = scores * (scores > test_cfg.get('score_thr', 0))
        image = torch.arange(images.shape[0], device=images.device)[:, None].expand_as(labels)
        # Batched NMS: offset boxes so that those of different classes or images do not overlap.
        offsets = torch.stack((labels, image), dim=-1) * (1.0 + boxes.max())
        kept = nms(
            (boxes + offsets.repeat(1, 1, 2)).flatten(0, 1),
            scores.flatten(),
            test_cfg['nms']['iou_threshold'],
        )
        is_kept = torch.zeros_like(scores).flatten().index_fill(0, kept, 1.0)
        is_kept = is_kept.unflatten(0, scores.shape)
        scores, best = _highest(scores * is_kept, test_cfg['max_per_img'])
        is_box = scores > 0  # the others are padding
        boxes = boxes.gather(1, best[..., None].expand(-1, -1, 4)) * is_box[..., None]
        return boxes, scores, labels.gather(1, best) * is_box


def _highest(scores: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The highest scores (B, M) and their positions; all if ``most`` is negative.

    M is ``most``, or less if there are fewer scores. With dynamic sizes it is always ``most``, and
    the last scores may be 0: if M depended on the size, torch.export would take minutes to simplify
    shapes.
    """
    count = scores.shape[1]
    if most < 0 or isinstance(count, int):
        return scores.topk(count if most < 0 else min(most, count))
    scores, best = nn.functional.pad(scores, (0, most)).topk(most)
    return scores, best.clamp(max=count - 1)

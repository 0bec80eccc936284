"""The losses of a :class:`~vit_plugin.projects.distillation.distiller.Distiller`.

Each compares one output of the student with that of the teacher: logits, vectors of images, or
feature maps.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from mmengine.dist import all_gather
from torch import Tensor, nn

from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.models.heads.distilled_head import logit_loss
from vit_plugin.registry import MODELS

from .compared_outputs import Outputs

Distance = Literal['mse', 'cosine']
# Distances of vectors (..., C): timm's for features, and RADIO's for the vectors of images
# (arXiv:2312.06709).
DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    'mse': F.mse_loss,
    'cosine': lambda x, y: (1 - F.cosine_similarity(x, y, dim=-1)).mean(),
}


class DistillationLoss(nn.Module):
    """Base class of a loss of :class:`~vit_plugin.projects.distillation.distiller.Distiller`.

    Args:
        channels: channels of the student's output that is compared. The Distiller sets it.
        teacher_channels: channels of the teacher's output. The Distiller sets it.
        weight: factor of the loss.

    Attributes:
        compares: the name of the output, see
            :class:`~vit_plugin.projects.distillation.compared_outputs.Outputs`.
    """

    compares: ClassVar[str]

    def __init__(
        self, channels: PositiveInt, teacher_channels: PositiveInt, weight: Positive = 1.0
    ) -> None:
        super().__init__()
        self.channels, self.teacher_channels, self.weight = channels, teacher_channels, weight

    def forward(self, student: Outputs, teacher: Outputs) -> Tensor:
        """The weighted loss, in the precision of the teacher's outputs."""
        target = getattr(teacher, self.compares)
        return self.weight * self.compare(getattr(student, self.compares).to(target.dtype), target)

    def compare(self, x: Tensor, target: Tensor) -> Tensor:
        """The loss of a student's output ``x``, given the teacher's as ``target``."""
        raise NotImplementedError

    def projection(self) -> nn.Module:
        """A linear layer to the teacher's width, or the identity if the widths are equal."""
        if self.channels == self.teacher_channels:
            return nn.Identity()
        return nn.Linear(self.channels, self.teacher_channels)


@MODELS.register_module()
class LogitDistillation(DistillationLoss):
    """The cross entropy between the classes of teacher and student (arXiv:1503.02531).

    Args:
        channels, teacher_channels, weight: see :class:`DistillationLoss`.
        temperature: divides the logits of both. The loss is multiplied by its square, by which the
            gradients would shrink otherwise.
        target: with ``'soft'``, the target is the teacher's distribution. The constant entropy of
            this is left out. With ``'hard'``, it is the teacher's most likely class
            (arXiv:2012.12877, Equation 3), without the temperature.
    """

    # Overrides attributes of DistillationLoss, which describes them.
    compares = 'logits'

    def __init__(
        self,
        channels: PositiveInt,
        teacher_channels: PositiveInt,
        weight: Positive = 1.0,
        temperature: Positive = 1.0,
        target: Literal['soft', 'hard'] = 'soft',
    ) -> None:
        super().__init__(channels, teacher_channels, weight)
        self.temperature, self.target = temperature, target

    def compare(self, x: Tensor, target: Tensor) -> Tensor:
        return logit_loss(x, target, self.temperature, self.target)


@MODELS.register_module()
class VectorDistillation(DistillationLoss):
    """The distance between the vectors of an image, projected to the teacher's width.

    Args:
        channels, teacher_channels, weight: see :class:`DistillationLoss`.
        distance: ``'mse'``, the mean squared error, or ``'cosine'``, 1 - the cosine.
    """

    # Overrides attributes of DistillationLoss, which describes them.
    compares = 'vector'

    def __init__(
        self,
        channels: PositiveInt,
        teacher_channels: PositiveInt,
        weight: Positive = 1.0,
        distance: Distance = 'mse',
    ) -> None:
        super().__init__(channels, teacher_channels, weight)
        self.distance, self.project = distance, self.projection()

    def compare(self, x: Tensor, target: Tensor) -> Tensor:
        return DISTANCES[self.distance](self.project(x), target)


@MODELS.register_module()
class MapDistillation(VectorDistillation):
    """The distance between feature maps, on the teacher's grid (arXiv:2312.06709).

    Args:
        channels, teacher_channels, weight, distance: see :class:`VectorDistillation`.
    """

    # Overrides attributes of DistillationLoss, which describes them.
    compares = 'map'

    def compare(self, x: Tensor, target: Tensor) -> Tensor:
        return super().compare(patches(x, target), patches(target, target))


@MODELS.register_module()
class GramDistillation(DistillationLoss):
    """The mean squared error of the cosines between the patches of each image.

    It is the Gram loss of DINOv3 (arXiv:2508.10104, Section 4.2). It compares no features across
    models, so no projection is needed.

    Args:
        channels, teacher_channels, weight: see :class:`DistillationLoss`.
    """

    # Overrides attributes of DistillationLoss, which describes them.
    compares = 'map'

    def compare(self, x: Tensor, target: Tensor) -> Tensor:
        x, target = (F.normalize(patches(y, target), dim=-1) for y in (x, target))
        return F.mse_loss(x @ x.mT, target @ target.mT)  # (B, h*w, h*w)


@MODELS.register_module()
class SimilarityDistillation(DistillationLoss):
    """Match the teacher's similarities between an image and others (arXiv:2101.04731).

    The others are the images of this and earlier batches on all ranks. The teacher's vectors of
    them are kept in a queue.

    Args:
        channels, teacher_channels, weight: see :class:`DistillationLoss`.
        length: number of vectors in the queue.
        temperature, teacher_temperature: divisors of the cosines of the student and the teacher.
    """

    # Overrides attributes of DistillationLoss, which describes them.
    compares = 'vector'
    queue: Tensor

    def __init__(
        self,
        channels: PositiveInt,
        teacher_channels: PositiveInt,
        weight: Positive = 1.0,
        length: PositiveInt = 4096,
        temperature: Positive = 0.2,
        teacher_temperature: Positive = 0.01,
    ) -> None:
        super().__init__(channels, teacher_channels, weight)
        self.temperature, self.teacher_temperature = temperature, teacher_temperature
        self.project = self.projection()
        # The same random vectors on all ranks, so that their queues stay equal.
        generator = torch.Generator().manual_seed(0)
        initial = torch.randn(length, teacher_channels, generator=generator)
        self.register_buffer('queue', F.normalize(initial, dim=1))

    def compare(self, x: Tensor, target: Tensor) -> Tensor:
        x, target = (F.normalize(y, dim=1) for y in (self.project(x), target))
        self._enqueue(target)
        queue = self.queue.to(target.dtype)
        teacher = F.softmax(target @ queue.T / self.teacher_temperature, dim=1)
        student = F.log_softmax(x @ queue.T / self.temperature, dim=1)
        return -(teacher * student).sum(dim=1).mean()

    @torch.no_grad()
    def _enqueue(self, vectors: Tensor) -> None:
        """Put the vectors (B, C) of all ranks at the start of the queue, and drop the oldest."""
        vectors = torch.cat(all_gather(vectors.contiguous()))
        self.queue.copy_(torch.cat((vectors.to(self.queue.dtype), self.queue))[: len(self.queue)])


def patches(feature_map: Tensor, like: Tensor) -> Tensor:
    """Resize a map (B, C, h', w') to the grid of another (B, C', h, w), as vectors (B, h*w, C)."""
    if feature_map.shape[2:] != like.shape[2:]:
        feature_map = F.interpolate(feature_map, like.shape[2:], mode='bilinear', antialias=True)
    return feature_map.flatten(2).mT

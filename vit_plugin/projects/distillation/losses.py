"""Losses between the outputs of a student and of its teacher."""

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from mmengine.dist import all_gather
from torch import Tensor, nn

from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.models.heads.distilled_head import compare_logits
from vit_plugin.registry import MODELS

from .compared_outputs import Outputs

Distance = Literal['mse', 'cosine']
# Distances of vectors (..., C): timm's, and that of RADIO's summaries (arXiv:2312.06709).
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
        """The loss of a student's output, given the teacher's."""
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
        temperature: divides the logits of both. Its square scales the loss, as the gradients shrink
            by it.
        target: ``'soft'`` takes the teacher's distribution, up to its entropy, which is constant.
            ``'hard'`` takes its most likely class (arXiv:2012.12877, Equation 3), without the
            temperature.
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
        return compare_logits(x, target, self.temperature, self.target)


@MODELS.register_module()
class VectorDistillation(DistillationLoss):
    """The distance between the vectors of an image, in the teacher's width.

    Args:
        channels, teacher_channels, weight: see :class:`DistillationLoss`.
        distance: ``'mse'``, the mean square of the differences, or ``'cosine'``, 1 - the cosine.
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
    """The differences of the cosines between patches of an image (arXiv:2508.10104, Section 4.2).

    The widths may differ, so there is no projection.

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

    The others are the images of this and earlier batches of all processes. Their vectors, computed
    by the teacher, are kept in a queue.

    Args:
        channels, teacher_channels, weight: see :class:`DistillationLoss`.
        length: number of vectors in the queue.
        temperature, teacher_temperature: divide the cosines of the student and the teacher.
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
        # Start from the same random vectors in all processes, so that their queues are equal.
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
        """Put the vectors of all processes at the beginning of the queue, and drop the oldest."""
        vectors = torch.cat(all_gather(vectors.contiguous()))
        self.queue.copy_(torch.cat((vectors.to(self.queue.dtype), self.queue))[: len(self.queue)])


def patches(map: Tensor, like: Tensor) -> Tensor:
    """Resize a map (B, C, h', w') to the grid of another (B, C', h, w), as vectors (B, h*w, C)."""
    if map.shape[2:] != like.shape[2:]:
        map = F.interpolate(map, like.shape[2:], mode='bilinear', antialias=True)
    return map.flatten(2).mT

"""The base class of methods that learn from several views (augmented crops) of each image."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig, PositiveInt, Typed
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable

with needed_by('Self-supervised learning'):
    make_importable()
    from mmpretrain.models.selfsup.base import BaseSelfSupervisor


class MultiViewSelfSupervisor(BaseSelfSupervisor):
    """Base class of algorithms that compare several views of each image.

    The first ``num_large`` views are the large ones (global crops), the others small (local crops).

    Args:
        backbone: the config of the encoder. Its last output must be (B, C), so ``out_type`` is
            ``'cls_token'`` or ``'avg_featmap'``.
        neck: the config of the projection.
        head: the config of the loss.
        num_large: number of large views. They share one size.
        data_preprocessor: the config of the preprocessor, which returns a list of views.
        init_cfg: MMEngine's initialization config.
    """

    def __init__(
        self,
        backbone: Typed,
        neck: Typed,
        head: Typed,
        num_large: PositiveInt = 2,
        data_preprocessor: Typed | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(
            backbone, neck, head, data_preprocessor=data_preprocessor, init_cfg=init_cfg
        )
        self.num_large = num_large

    def student(self) -> nn.Sequential:
        """The backbone and the projection as one module, for methods that also have a teacher.

        It shares their parameters, and maps images (B, C, H, W) to a tuple of one tensor (B, K).
        """
        return nn.Sequential(self.backbone, self.neck)

    def encode(
        self, backbone: nn.Module, images: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """A backbone's outputs for images (B, C, H, W), some patches of which may be masked.

        The last of them is (B, C). ``mask`` (B, h, w) is True at masked patches.
        """
        return backbone(images) if mask is None else backbone(images, mask)

    def features(self, views: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
        """The backbone's outputs for views (B, C, H_v, W_v), one tuple for each batch.

        Successive views of one size form one batch.
        """
        groups = groupby(views, key=lambda x: x.shape)
        return [self.encode(self.backbone, torch.cat(list(group))) for _, group in groups]

    def projections(self, features: Sequence[tuple[Tensor, ...]], number: int) -> Tensor:
        """The projections (V, B, K) of V = ``number`` views, in the order of ``features``."""
        return torch.cat([self.neck(outputs)[-1] for outputs in features]).unflatten(
            0, (number, -1)
        )

    def check_views(self, views: Any) -> None:
        """Check that there are enough views of each image.

        Raises:
            ConfigError: if there are fewer than two, or fewer than ``num_large``.
        """
        if not isinstance(views, (list, tuple)) or len(views) < max(2, self.num_large):
            raise ConfigError(
                f'{type(self).__name__}: num_large={self.num_large} large views and at least two '
                'views of each image are needed; give them by views of data_preprocessor, or by '
                'MultiView in the pipeline.'
            )


def at_least_float32(x: Tensor) -> Tensor:
    """The tensor in float32, or in float64 if it already is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))

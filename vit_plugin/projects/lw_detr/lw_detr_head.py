"""LW-DETR's head in MMDetection: a DETR decoder without an encoder, on the maps of any backbone."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.model import bias_init_with_prob, constant_init
from torch import Tensor, nn

from vit_plugin.arguments.fields import Depth, InitConfig, PositiveInt, Section
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.projects.detr_family.decoder_memory import (
    ANCHOR_MARGIN,
    DecoderMemory,
    ImageSizes,
    apply_deltas,
)
from vit_plugin.projects.detr_family.head_settings import MATCHING, Loss, Matching
from vit_plugin.registry import MODELS

from .query_decoder import DecoderCfg, DecoderLayer, QueryTestCfg, complete_test_cfg

with needed_by('LWDETRHead'):
    make_importable()
    from mmdet.models.layers.transformer import MLP, coordinate_to_encoding

    from vit_plugin.projects.detr_family.class_rows import class_rows
    from vit_plugin.projects.detr_family.grouped_detr_head import GroupedDETRHead


@MODELS.register_module()
class LWDETRHead(GroupedDETRHead):
    """The decoder and the losses of LW-DETR (arXiv:2406.03459, Section 3.1) and RF-DETR.

    Every position of the maps proposes a box. The best proposals become the boxes of the queries
    (two stages, arXiv:2010.04159), which the layers refine. Training uses several groups of
    queries, prediction only the first (arXiv:2207.13085). It is the ``bbox_head`` of a
    ``SingleStageDetector``. Costs, losses and post-processing are MMDetection's.

    Args:
        num_classes: number of classes.
        num_queries: queries of a group, and so the maximum number of objects in an image.
        num_groups: number of groups in training.
        num_levels: number of maps.
        embed_dims: channels of the maps.
        unused_rows: rows of the classification layers that are not a class, as published weights
            have them. They affect which proposals are best, but are never predicted.
        empty_proposals: whether positions without a valid anchor, in padding and at the border,
            propose an empty box, as in Roboflow's code. transformers leaves them out.
        decoder: its layers, see :class:`~vit_plugin.projects.lw_detr.query_decoder.DecoderCfg`.
        loss_cls, loss_bbox, loss_iou: MMDetection's losses. They apply to the proposals and to
            every layer.
        train_cfg: MMDetection's, with a ``HungarianAssigner`` of queries to objects. Default:
            LW-DETR's costs.
        test_cfg: see :class:`~vit_plugin.projects.lw_detr.query_decoder.QueryTestCfg`. The detector
            passes its own ``test_cfg``.
        init_cfg: MMEngine's initialization config.

    Raises:
        ConfigError: if ``test_cfg`` has more queries or layers than there are, if a number of heads
            does not divide ``embed_dims``, or if ``unused_rows`` is out of range. In the forward,
            if the number of maps or their channels differ from the arguments, or if the maps have
            fewer positions than queries.
    """

    # Former arguments -> how they are written now, for the message about them.
    renamed_arguments = {name: f'decoder=dict({name}=...)' for name in DecoderCfg.__annotations__}

    def __init__(
        self,
        num_classes: PositiveInt,
        num_queries: PositiveInt = 300,
        num_groups: Depth = 13,
        num_levels: Depth = 1,
        embed_dims: PositiveInt = 256,
        unused_rows: Sequence[int] = (),
        empty_proposals: bool = False,
        decoder: DecoderCfg | None = None,
        loss_cls: Loss = dict(type='vit_plugin.IoUAwareBCELoss'),
        loss_bbox: Loss = dict(type='mmdet.L1Loss', loss_weight=5.0),
        loss_iou: Loss = dict(type='mmdet.GIoULoss', loss_weight=2.0),
        train_cfg: Matching | None = None,
        test_cfg: QueryTestCfg | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        layer_options: Section = dict(decoder or {})
        num_layers = layer_options.pop('num_layers', 3)
        super().__init__(
            num_groups,
            num_classes,
            embed_dims,
            loss_cls=loss_cls,
            loss_bbox=loss_bbox,
            loss_iou=loss_iou,
            train_cfg=train_cfg or MATCHING,
            test_cfg=complete_test_cfg(test_cfg or {}, num_queries, num_layers, num_classes),
            init_cfg=init_cfg,
        )
        self.num_queries, self.num_levels = num_queries, num_levels
        self.empty_proposals = empty_proposals
        rows = class_rows('LWDETRHead', self.cls_out_channels, unused_rows)
        self.register_buffer('class_rows', rows, persistent=False)
        self._build_layers(len(rows) + len(unused_rows), num_layers, **layer_options)

    def _build_layers(self, num_rows: int, num_layers: int, **layer_options: Any) -> None:
        """Build the queries, the proposal layers of each group, and the decoder."""
        dims, groups = self.embed_dims, range(self.num_groups)
        queries = self.num_groups * self.num_queries
        self.reference, self.content = nn.Embedding(queries, 4), nn.Embedding(queries, dims)
        self.proposal_fc = nn.ModuleList(nn.Linear(dims, dims) for _ in groups)
        self.proposal_norm = nn.ModuleList(nn.LayerNorm(dims) for _ in groups)
        self.proposal_cls = nn.ModuleList(nn.Linear(dims, num_rows) for _ in groups)
        self.proposal_reg = nn.ModuleList(MLP(dims, dims, 4, 3) for _ in groups)
        self.layers = nn.ModuleList(
            DecoderLayer(dims, self.num_levels, **layer_options) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(dims)
        self.position = MLP(2 * dims, dims, dims, 2)
        self.fc_cls = nn.Linear(dims, num_rows)
        self.fc_reg = MLP(dims, dims, 4, 3)

    def init_weights(self) -> None:
        """Initialize queries at their proposals, and classes with a score of 0.01."""
        super().init_weights()
        nn.init.zeros_(self.reference.weight)
        for fc_cls in (self.fc_cls, *self.proposal_cls):
            nn.init.constant_(fc_cls.bias, bias_init_with_prob(0.01))
        for fc_reg in (self.fc_reg, *self.proposal_reg):
            constant_init(fc_reg.layers[-1], 0)

    def forward(
        self, x: Sequence[Tensor], sizes: ImageSizes | None = None, num_groups: int = 1
    ) -> tuple[Tensor, ...]:
        """Propose boxes and decode them into objects.

        Args:
            x: ``num_levels`` maps (B, embed_dims, h, w).
            sizes: heights and widths of the images (B, 2), and those of the padded batch; None
                without padding.
            num_groups: number of groups of queries to compute.

        Returns:
            Logits (layers, B, Q, num_classes) and boxes (layers, B, Q, 4) of the layers; logits (B,
            Q, num_classes) and boxes (B, Q, 4) of the proposals; and the features (layers, B, Q, C)
            of the layers and (B, Q, C) of the proposals. Boxes are (x, y, w, h), their center and
            size as fractions of the image. Q counts the queries of all groups.
        """
        number, memory = self._num_queries(x), DecoderMemory.from_maps(x, sizes)
        inside = (memory.anchors > ANCHOR_MARGIN) & (memory.anchors < 1 - ANCHOR_MARGIN)
        valid = (inside.all(-1) & ~memory.padding)[..., None]  # (B, N, 1)
        candidates = memory.features * valid, memory.anchors * valid, valid
        best = [self._propose(group, number, *candidates) for group in range(num_groups)]
        logits, proposals, features = (torch.cat(parts, dim=1) for parts in zip(*best, strict=True))
        content, shifts = (
            table.weight.unflatten(0, (self.num_groups, -1))[:num_groups, :number].flatten(0, 1)
            for table in (self.content, self.reference)
        )
        references = apply_deltas(proposals.detach(), shifts)
        decoded = self._decode(content, references, memory, num_groups)
        return (
            self._class_logits(self.fc_cls(decoded)),
            apply_deltas(references, self.fc_reg(decoded)),
            self._class_logits(logits),
            proposals,
            decoded,
            features,
        )

    def _class_logits(self, logits: Tensor) -> Tensor:
        """Logits without the unused rows."""
        if logits.shape[-1] == len(self.class_rows):
            return logits
        return logits.index_select(-1, self.class_rows)

    def _num_queries(self, x: Sequence[Tensor]) -> int:
        """The number of queries of a group in this mode.

        Raises:
            ConfigError: if the maps do not fit the head, or have fewer positions than queries.
        """
        if [level.shape[1] for level in x] != [self.embed_dims] * self.num_levels:
            raise ConfigError(
                f'LWDETRHead got {[tuple(level.shape) for level in x]} but takes '
                f'num_levels={self.num_levels} maps of embed_dims={self.embed_dims} channels: '
                'change these, or the neck.'
            )
        number = self.num_queries if self.training else self.test_cfg['num_queries']
        positions = sum(level[0, 0].numel() for level in x)
        if number > positions:
            raise ConfigError(
                f'LWDETRHead has {number} queries, and the maps only {positions} positions; '
                'give larger images, or fewer num_queries.'
            )
        return number

    def _propose(
        self, group: int, number: int, elements: Tensor, anchors: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, boxes and features of a group's best proposals.

        Args:
            group: index of the group.
            number: number of proposals.
            elements: features (B, N, C) of all positions; 0 for positions without a valid anchor.
            anchors: anchors (B, N, 4) of all positions; 0 for the invalid ones.
            valid: True for positions with a valid anchor (B, N, 1).
        """
        features = self.proposal_norm[group](self.proposal_fc[group](elements))
        logits = self.proposal_cls[group](features)
        scores = logits.max(-1).values  # (B, N)
        if not self.empty_proposals:
            scores = scores.masked_fill(~valid[..., 0], -torch.inf)
        best = scores.topk(number, dim=1).indices[..., None]
        features, anchors, logits = (
            part.gather(1, best.expand(-1, -1, part.shape[-1]))
            for part in (features, anchors, logits)
        )
        return logits, apply_deltas(anchors, self.proposal_reg[group](features)), features

    def _decode(
        self, content: Tensor, references: Tensor, memory: DecoderMemory, num_groups: int
    ) -> Tensor:
        """Queries (Q, C) at boxes (B, Q, 4) -> normed outputs of the layers (layers, B, Q, C)."""
        # From fractions of the image to fractions of each map with its padding: (B, Q, levels, 4).
        boxes = references[:, :, None] * memory.ratios.repeat(1, 1, 2)[:, None]
        encoded = coordinate_to_encoding(boxes[:, :, 0], self.embed_dims // 2)
        position = self.position(encoded.to(memory.features))  # (B, Q, C)
        query, outs = content.expand(position.shape[0], -1, -1), []
        for layer in self.layers if self.training else self.layers[: self.test_cfg['num_layers']]:
            query = layer(query, position, num_groups, boxes, memory)
            outs.append(self.norm(query))
        return torch.stack(outs)

    def best(self, x: Sequence[Tensor], sizes: ImageSizes) -> tuple[Tensor, ...]:
        """Maps -> the predictions, highest score first, for an exported graph.

        Returns:
            Boxes (B, N, 4) as fractions, scores (B, N), classes (B, N), and features (B, N, C).
        """
        logits, boxes, _, _, features, _ = self(x, sizes)
        return self.select_best(logits[-1], boxes[-1], features[-1])

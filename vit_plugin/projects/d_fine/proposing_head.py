"""A two-stage DETR head: each element of the maps proposes a box, and the best become queries."""

from collections.abc import Sequence
from typing import Literal

import torch
from mmengine.model import bias_init_with_prob, constant_init
from torch import Tensor, nn

from vit_plugin.arguments.fields import InitConfig, PositiveInt, Section
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.models.layers.conv_norm import ConvNorm
from vit_plugin.projects.detr_family.decoder_memory import ANCHOR_MARGIN, DecoderMemory, ImageSizes
from vit_plugin.projects.detr_family.head_settings import MATCHING, Loss, Matching, MaxBoxes

from .decoder_variants import DECODER_VARIANTS
from .fine_decoder import MLP, FineDecoderCfg, FineDecoderLayer, position_mlp
from .noised_objects import NoisedObjects

with needed_by('RTDETRHead'):
    make_importable()
    from mmdet.models.layers import inverse_sigmoid

    from .noised_detr_head import Noise, NoisedDETRHead, QueryOutputs

VariantName = Literal[
    'rt_detr', 'rt_detr_deim', 'd_fine', 'd_fine_deim', 'ecdet', 'deimv2', 'deimv2_transformers'
]


class ProposingHead(NoisedDETRHead):
    """The base class of RT-DETR's and D-FINE's heads.

    It is the ``bbox_head`` of a ``SingleStageDetector`` with a :class:`HybridEncoder`. A training
    step has one GPU sync.

    A subclass builds ``fc_reg`` for boxes, and computes the boxes of all layers in :meth:`_decode`.

    Args:
        num_classes: number of classes.
        num_queries: number of queries, and so the maximum number of objects in an image.
        in_channels: channels of each map. Maps of other channels than ``embed_dims`` are projected,
            in RT-DETR all maps.
        embed_dims: channels of the queries.
        variant: the paper, a row of ``DECODER_VARIANTS``.
        decoder: its layers, see :class:`FineDecoderCfg`.
        noise, joint_matching: see :class:`NoisedDETRHead`.
        loss_cls, loss_bbox, loss_iou: losses of every layer and of the proposals.
        train_cfg: MMDetection's, with a ``HungarianAssigner``. Default: RT-DETR's costs.
        test_cfg: ``max_per_img``, the maximum number of boxes per image. Default: 300.
        init_cfg: MMEngine's initialization config.

    Raises:
        ConfigError: if points or heads do not fit the maps. In the forward, if it gets other maps,
            or maps with fewer elements than queries.
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        num_queries: PositiveInt = 300,
        in_channels: Sequence[PositiveInt] = (256, 256, 256),
        embed_dims: PositiveInt = 256,
        variant: VariantName = 'rt_detr',
        decoder: FineDecoderCfg | None = None,
        noise: Noise | None = None,
        joint_matching: bool = False,
        loss_cls: Loss = dict(type='vit_plugin.OverlapVarifocalLoss'),
        loss_bbox: Loss = dict(type='mmdet.L1Loss', loss_weight=5.0),
        loss_iou: Loss = dict(type='mmdet.GIoULoss', loss_weight=2.0),
        train_cfg: Matching | None = None,
        test_cfg: MaxBoxes | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        max_boxes = num_queries * num_classes
        super().__init__(
            noise,
            joint_matching,
            num_classes,
            embed_dims,
            loss_cls=loss_cls,
            loss_bbox=loss_bbox,
            loss_iou=loss_iou,
            train_cfg=train_cfg or MATCHING,
            test_cfg=dict(max_per_img=min(max_boxes, (test_cfg or {}).get('max_per_img', 300))),
            init_cfg=init_cfg,
        )
        self.num_queries, self.in_channels = num_queries, list(in_channels)
        self.variant = DECODER_VARIANTS[variant]
        self._build_proposals()
        self._build_decoder(dict(decoder or {}))

    def _build_proposals(self) -> None:
        dims = self.embed_dims
        self.projections = nn.ModuleList(
            ConvNorm(channels, dims, 1, dict(type='BN'))
            if channels != dims or self.variant.projects_maps
            else nn.Identity()
            for channels in self.in_channels
        )
        if self.variant.projects_proposals:
            self.proposal_fc, self.proposal_norm = nn.Linear(dims, dims), nn.LayerNorm(dims)
        self.proposal_cls = nn.Linear(dims, self.num_classes)
        self.proposal_reg = self.box_mlp()
        if self.noise['number']:
            self.noised_classes = nn.Embedding(
                self.num_classes + 1, dims, padding_idx=self.num_classes
            )

    def _build_decoder(self, options: Section) -> None:
        num_layers = options.pop('num_layers', 6)
        num_points = options.setdefault('num_points', [4] * len(self.in_channels))
        if len(num_points) != len(self.in_channels):
            raise ConfigError(
                f'{type(self).__name__}: decoder.num_points={num_points} must have a '
                f'number for each of {len(self.in_channels)} maps.'
            )
        dims, classes = self.embed_dims, self.num_classes
        self.position = position_mlp(dims, self.variant)
        self.layers = nn.ModuleList(
            FineDecoderLayer(dims, self.variant, **options) for _ in range(num_layers)
        )
        self.fc_cls = nn.ModuleList(nn.Linear(dims, classes) for _ in range(num_layers))

    def box_mlp(self, outputs: int = 4) -> MLP:
        """The MLP from a query to a box, or to the change of a box."""
        return MLP(self.embed_dims, self.embed_dims, outputs, 3, self.variant.act)

    def init_weights(self) -> None:
        """Initialize boxes at their proposals, and classes with a score of 0.01."""
        super().init_weights()
        for fc_cls in (self.proposal_cls, *self.fc_cls):
            nn.init.constant_(fc_cls.bias, bias_init_with_prob(0.01))
        for fc_reg in (self.proposal_reg, *self.fc_reg):
            constant_init(fc_reg.layers[-1], 0)

    def forward(
        self,
        x: Sequence[Tensor],
        sizes: ImageSizes | None = None,
        noised: NoisedObjects | None = None,
    ) -> QueryOutputs:
        """Maps -> logits and boxes.

        Args:
            x: maps (B, C, h, w), from the finest.
            sizes: heights and widths of the images (B, 2), and those of the padded batch; None
                without padding.
            noised: noised objects, which become further queries in training.
        """
        self._check_maps(x)
        maps = [layer(level) for layer, level in zip(self.projections, x, strict=True)]
        memory = DecoderMemory.from_maps(maps, sizes)
        content, logits, proposals = self._propose(memory)
        references, attn_mask = proposals.detach(), None
        if noised is not None:
            content = torch.cat((self.noised_classes(noised.labels).to(content), content), dim=1)
            boxes = inverse_sigmoid(noised.boxes, eps=1e-5).sigmoid()
            references = torch.cat((boxes.to(references), references), dim=1)
            attn_mask = noised.attention_mask(self.num_queries)
        decoded = self._decode(content, references, memory, attn_mask, sizes is not None)
        return QueryOutputs(proposed_logits=logits, proposed_boxes=proposals, **decoded)

    def _check_maps(self, x: Sequence[Tensor]) -> None:
        """Raise a ``ConfigError`` for other maps, or fewer elements than queries."""
        name = type(self).__name__
        if [level.shape[1] for level in x] != self.in_channels:
            raise ConfigError(
                f'{name} got {[tuple(level.shape) for level in x]} but takes maps (B, C, h, w) '
                f'of in_channels={self.in_channels}: change these, or the neck.'
            )
        num_elements = sum(level[0, 0].numel() for level in x)
        if self.num_queries > num_elements:
            raise ConfigError(
                f'{name} has {self.num_queries} queries, and the maps only {num_elements} '
                'positions; give larger images, or fewer num_queries.'
            )

    def _propose(self, memory: DecoderMemory) -> tuple[Tensor, Tensor, Tensor]:
        """The proposals with the highest scores: queries (B, Q, C), logits, and boxes (B, Q, 4)."""
        anchors = memory.anchors
        inside = (anchors > ANCHOR_MARGIN) & (anchors < 1 - ANCHOR_MARGIN)
        valid = inside.all(-1, keepdim=True)
        valid = valid & ~memory.padding[..., None]  # (B, N, 1)
        features = memory.features * valid
        if self.variant.projects_proposals:
            features = self.proposal_norm(self.proposal_fc(features))
        logits = self.proposal_cls(features)
        best = logits.max(-1).values.topk(self.num_queries, dim=1).indices[..., None]
        # Boxes are predicted as logits. For anchors that are not valid, these are infinite.
        anchors = torch.where(valid, anchors.logit(), torch.inf)
        features, anchors, logits = (
            part.gather(1, best.expand(-1, -1, part.shape[-1]))
            for part in (features, anchors, logits)
        )
        deltas = self.proposal_reg(features)
        return features.detach(), logits, (deltas.to(anchors) + anchors).sigmoid()

    def _decode(
        self,
        content: Tensor,
        references: Tensor,
        memory: DecoderMemory,
        attn_mask: Tensor | None,
        is_padded: bool,
    ) -> dict[str, Tensor]:
        """Queries at boxes -> the fields of :class:`QueryOutputs` that do not describe proposals.

        Args:
            content: the queries (B, Q, C).
            references: their boxes (B, Q, 4).
            memory: the maps.
            attn_mask: attention mask, True for queries that a query must not see (Q, Q), or None.
            is_padded: whether the maps are padded.
        """
        raise NotImplementedError

    def best(self, x: Sequence[Tensor], sizes: ImageSizes) -> tuple[Tensor, ...]:
        """Maps -> the predictions, best first, for an exported graph.

        Returns:
            Boxes (B, N, 4) as fractions, scores (B, N), classes (B, N), and features (B, N, C).
        """
        outputs = self(x, sizes)
        return self.select_best(outputs.logits[-1], outputs.boxes[-1], outputs.features[-1])

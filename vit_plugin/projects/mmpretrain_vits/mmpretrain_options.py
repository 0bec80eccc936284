"""Types of the arguments of MMPretrain's Vision Transformers that have a translation.

Other arguments are rejected when a backbone is built.
"""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import (
    Depth,
    Fraction,
    Indices,
    InitConfig,
    NormConfig,
    PositiveInt,
    Rate,
    Size,
    Typed,
)

Zero = Annotated[float, Field(ge=0, le=0)]  # other values have no translation


class ArchSizes(TypedDict):
    """MMPretrain's dict for ``arch``."""

    embed_dims: PositiveInt
    num_layers: Depth
    num_heads: PositiveInt
    feedforward_channels: PositiveInt


class PatchOptions(TypedDict, total=False):
    """Arguments of mmcv's ``PatchEmbed`` that have a translation.

    ``conv_type`` and ``dilation`` are accepted only as mmcv's defaults.
    """

    in_channels: PositiveInt
    conv_type: Literal['Conv2d', None]
    kernel_size: Size
    stride: Size | None
    padding: Literal['corner', 0]
    dilation: Literal[1]
    bias: bool
    norm_cfg: NormConfig | None


class LayerOptions(TypedDict, total=False):
    """Arguments of MMPretrain's ``TransformerEncoderLayer`` that have a translation.

    ``num_fcs`` is accepted only as MMPretrain's default.
    """

    num_heads: PositiveInt
    feedforward_channels: PositiveInt
    layer_scale_init_value: Fraction
    drop_rate: Rate
    attn_drop_rate: Rate
    num_fcs: Literal[2]
    qkv_bias: bool
    ffn_type: Literal['origin', 'swiglu_fused']
    act_cfg: Typed
    norm_cfg: NormConfig


OutType = Literal['raw', 'cls_token', 'featmap', 'avg_featmap']


class CommonOptions(TypedDict, total=False):
    """Arguments that all of MMPretrain's classes here take."""

    img_size: Size
    patch_size: Size
    in_channels: PositiveInt
    out_indices: int | Indices
    drop_path_rate: Rate
    qkv_bias: bool
    norm_cfg: NormConfig
    final_norm: bool
    interpolate_mode: Literal['bicubic', 'bilinear']
    patch_cfg: PatchOptions
    init_cfg: InitConfig


class DistilledOptions(CommonOptions, total=False):
    """Arguments of MMPretrain's ``DistilledVisionTransformer``.

    It ignores ``pre_norm``, which is rejected here.
    """

    out_type: OutType
    drop_rate: Rate
    frozen_stages: Annotated[int, Field(ge=-1)]
    layer_scale_init_value: Fraction
    layer_cfgs: LayerOptions


class ViTOptions(DistilledOptions, total=False):
    """Arguments of MMPretrain's ``VisionTransformer``."""

    with_cls_token: bool
    pre_norm: bool


class MoCoV3Options(ViTOptions, total=False):
    """Arguments of MMPretrain's ``MoCoV3ViT``."""

    stop_grad_conv1: bool
    norm_eval: bool


class DeiT3Options(CommonOptions, total=False):
    """Arguments of MMPretrain's ``DeiT3``. It fails with ``out_type='avg_featmap'``."""

    drop_rate: Rate
    with_cls_token: bool
    use_layer_scale: bool
    out_type: Literal['raw', 'cls_token', 'featmap']
    layer_cfgs: LayerOptions


class EVA02Options(CommonOptions, total=False):
    """Arguments of MMPretrain's ``ViTEVA02``."""

    out_type: OutType
    sub_ln: bool
    attn_drop_rate: Rate
    drop_rate: Zero
    proj_drop_rate: Zero
    with_cls_token: bool
    frozen_stages: Annotated[int, Field(ge=-1)]
    pre_norm: bool

"""Convert the blocks of timm's encoders to our ``encoder`` and ``numerics``.

Attributes are read by name, class by class. An attribute that timm renames or removes is an error,
not a default.
"""

from dataclasses import asdict, fields
from typing import Any

from timm import layers
from timm.models import beit, eva, vision_transformer
from timm.models.vitamin import GeGluMlp
from torch import nn

from vit_plugin.arguments.encoder_options import BlockOptions
from vit_plugin.arguments.fields import Section

from .norms import convert_activation, convert_norm

TIMM_ATTENTIONS = (layers.Attention, layers.AttentionRope, eva.EvaAttention, beit.Attention)
GATED_MLPS = (layers.GluMlp, layers.SwiGLU, GeGluMlp)
# Options that our encoder has once, for all blocks.
SHARED_FIELDS = ('num_heads', 'feedforward_channels', 'norm_cfg', 'act_cfg')


def convert_encoder(model: nn.Module) -> tuple[dict[str, int], Section, Section]:
    """The sizes, the ``encoder`` and the ``numerics`` of a model's blocks.

    Raises:
        ValueError: if a block is of an unknown kind, or if blocks differ in ``SHARED_FIELDS``.
    """
    blocks = [_convert_block(block) for block in model.blocks]
    shared = {
        name: _only_value(name, [block_fields[name] for block_fields, _ in blocks])
        for name in SHARED_FIELDS
    }
    sizes = dict(
        embed_dims=model.embed_dim,
        num_layers=len(blocks),
        num_heads=shared['num_heads'],
        feedforward_channels=shared['feedforward_channels'],
    )
    encoder: Section = {}
    for option in fields(BlockOptions):
        values = [asdict(options)[option.name] for _, options in blocks]
        if all(value == option.default for value in values):
            continue
        if all(value == values[0] for value in values):
            encoder[option.name] = values[0]
        else:  # in `num_kv_heads`, None means as many as heads; a list must state the number
            encoder[option.name] = [
                shared['num_heads'] if value is None else value for value in values
            ]
    return sizes, encoder, dict(norm_cfg=shared['norm_cfg'], act_cfg=shared['act_cfg'])


def _only_value(name: str, values: list[Any]) -> Any:
    """The value that all blocks have.

    Raises:
        ValueError: if they differ, or if none has any.
    """
    if not values:
        raise ValueError(f'its blocks have no {name}')
    if any(value != values[0] for value in values):
        raise ValueError(f'its blocks differ in {name}')
    return values[0]


def _convert_block(block: nn.Module) -> tuple[Section, BlockOptions]:
    """The ``SHARED_FIELDS`` of a block, and its options.

    Raises:
        ValueError: if it is of an unknown kind, or if our blocks have no such combination.
    """
    scales: list[float]  # initial LayerScale of the attention and of the MLP; 0: none
    if type(block) in (eva.EvaBlock, beit.Block):
        scales = [
            0.0 if gamma is None else float(block.init_values or 0.0)
            for gamma in (block.gamma_1, block.gamma_2)
        ]
    elif type(block) is vision_transformer.Block:
        scales = [
            0.0 if isinstance(scale, nn.Identity) else float(scale.init_values)
            for scale in (block.ls1, block.ls2)
        ]
    else:
        raise ValueError(f'its blocks ({type(block).__name__}) are not known')
    first, second = scales
    if second not in (0.0, first):  # ours can leave out only that of the MLP
        raise ValueError('the LayerScales of a block start at different values')
    attn, mlp = block.attn, block.mlp
    options = BlockOptions(
        layer_scale_init_value=first,
        mlp_layer_scale=second == first,
        **_convert_attention(attn),
        **_convert_mlp(mlp),
    )
    if options.proj_bias != _has_biases(mlp):
        raise ValueError("only one of attention's projection and the MLP has a bias")
    norms = [
        convert_norm(norm)
        for norm in (block.norm1, block.norm2, *_attention_norms(attn), mlp.norm)
        if not isinstance(norm, nn.Identity)
    ]
    return dict(
        num_heads=attn.num_heads,
        feedforward_channels=(mlp.w2 if type(mlp) is GeGluMlp else mlp.fc2).in_features,
        act_cfg=convert_activation(mlp.act),
        norm_cfg=_only_value('norms', norms),
    ), options


def _attention_norms(attn: nn.Module) -> tuple[nn.Module, ...]:
    """The norms of queries, of keys and of attention's output. BEiT's attention has none of them.

    A missing norm is an ``nn.Identity``.
    """
    if type(attn) is beit.Attention:
        return (nn.Identity(),) * 3
    return attn.q_norm, attn.k_norm, attn.norm


def _convert_attention(attn: nn.Module) -> Section:
    """The fields of :class:`BlockOptions` that an attention determines."""
    if type(attn) not in TIMM_ATTENTIONS:
        raise ValueError(f'its attention ({type(attn).__name__}) is not known')
    if type(attn) is not beit.Attention and attn.gate is not None:
        raise ValueError('its attention is gated')
    if attn.proj.in_features != attn.proj.out_features:
        raise ValueError('its heads together are not as wide as its tokens')
    kv_heads = attn.num_kv_heads if isinstance(attn, layers.AttentionRope) else attn.num_heads
    query_norm, _, output_norm = _attention_norms(attn)
    return dict(
        num_kv_heads=None if kv_heads == attn.num_heads else kv_heads,
        qkv_bias=_qkv_bias(attn),
        qk_norm=not isinstance(query_norm, nn.Identity),
        attn_norm=not isinstance(output_norm, nn.Identity),
        proj_bias=attn.proj.bias is not None,
    )


def _qkv_bias(attn: nn.Module) -> bool | str:
    """The ``qkv_bias`` of an attention, whose projection is one layer or three.

    ``'qv'``: queries and values have a bias, keys have none.
    """
    if attn.qkv is not None:
        if isinstance(attn, (eva.EvaAttention, beit.Attention)) and attn.q_bias is not None:
            return 'qv'
        return attn.qkv.bias is not None
    match tuple(layer.bias is not None for layer in (attn.q_proj, attn.k_proj, attn.v_proj)):
        case True, True, True:
            return True
        case True, False, True:
            return 'qv'
        case False, False, False:
            return False
    raise ValueError('its queries, keys and values have biases in an unknown combination')


def _convert_mlp(mlp: nn.Module) -> Section:
    """The fields of :class:`BlockOptions` that an MLP determines, except its biases."""
    if type(mlp) not in (layers.Mlp, *GATED_MLPS) or (type(mlp) is layers.GluMlp and mlp.gate_last):
        raise ValueError(f'its MLP ({type(mlp).__name__}) is not known')
    has_norm = not isinstance(mlp.norm, nn.Identity)
    return dict(
        gated_mlp=type(mlp) in GATED_MLPS,
        mlp_norm='input' if has_norm and type(mlp) is GeGluMlp else has_norm,
    )


def _has_biases(mlp: nn.Module) -> bool:
    """True if all layers have a bias, False if none has one.

    Raises:
        ValueError: if only some have one.
    """
    biases = {layer.bias is not None for layer in mlp.modules() if isinstance(layer, nn.Linear)}
    if len(biases) > 1:
        raise ValueError('only some layers of its MLP have a bias')
    return biases.pop()

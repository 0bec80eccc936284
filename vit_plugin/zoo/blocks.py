"""Blocks of timm's encoders as our ``encoder``."""

from collections.abc import Mapping
from typing import Any

from timm import layers
from timm.models import eva, vision_transformer
from timm.models.vitamin import GeGluMlp
from torch import nn

from .numerics import act_of, norm_of

# What an entry of ``encoder`` is if it is not given. ``num_kv_heads`` is the number of heads then.
DEFAULTS = dict(block='pre_norm', differential=False, qkv_bias=True, qk_norm=False, attn_norm=False, mlp_norm=False,
                proj_bias=True, layer_scale_init_value=0., mlp_layer_scale=True, gated_mlp=False)

KINDS = {
    vision_transformer.Block: 'pre_norm', eva.EvaBlock: 'pre_norm',
    vision_transformer.ResPostBlock: 'post_norm', eva.EvaBlockPostNorm: 'post_norm',
    vision_transformer.ParallelThingsBlock: 'branched', vision_transformer.ParallelScalingBlock: 'parallel',
}
ATTENTIONS = (layers.Attention, layers.AttentionRope, layers.DiffAttention, eva.EvaAttention)
GATED = (layers.GluMlp, layers.SwiGLU, GeGluMlp)


def encoder_of(model: nn.Module) -> tuple[dict[str, int], dict[str, Any], dict[str, Any]]:
    """The sizes, the ``encoder`` and the ``numerics`` of a model's blocks.

    Raises:
        ValueError: if a block is of an unknown kind, or if blocks differ in what our encoder has once.
    """
    read = [_block(block) for block in model.blocks]
    once = {name: _same(name, [found[name] for found in read])
            for name in ('num_heads', 'feedforward_channels', 'norm_cfg', 'act_cfg', 'block', 'differential',
                         'attn_norm', 'mlp_norm', 'proj_bias', 'mlp_layer_scale')}
    sizes = dict(embed_dims=model.embed_dim, num_layers=len(read), num_heads=once['num_heads'],
                 feedforward_channels=once['feedforward_channels'])
    encoder = {}
    for name, default in (*DEFAULTS.items(), ('num_kv_heads', once['num_heads'])):
        values = [found[name] for found in read]
        if any(value != default for value in values):
            encoder[name] = values[0] if all(value == values[0] for value in values) else values
    return sizes, encoder, dict(norm_cfg=once['norm_cfg'], act_cfg=once['act_cfg'])


def _same(name: str, values: list[Any]) -> Any:
    if any(value != values[0] for value in values):
        raise ValueError(f'its blocks differ in {name}')
    return values[0]


def _block(block: nn.Module) -> dict[str, Any]:
    """What is known of one block."""
    kind = KINDS.get(type(block))
    if kind is None:
        raise ValueError(f'its blocks ({type(block).__name__}) are not known')
    if kind == 'branched':
        if len(block.attns) != 2:
            raise ValueError(f'its blocks have {len(block.attns)} branches, and not 2')
        branches = [_parts(attn.norm, attn.attn, ffn.norm, ffn.mlp, attn.ls, ffn.ls)
                    for attn, ffn in zip(block.attns, block.ffns, strict=True)]
        return dict(_same('their branches', branches), block=kind)
    if kind == 'parallel':
        return _parallel(block)
    if isinstance(block, (eva.EvaBlock, eva.EvaBlockPostNorm)):
        scales = [getattr(block, name, None) for name in ('gamma_1', 'gamma_2')]
        init_values: Any = block.init_values
        values = [0. if scale is None else float(init_values) for scale in scales]
    else:
        scales = [getattr(block, name, None) for name in ('ls1', 'ls2')]
        values = [_value_of(scale) for scale in scales]
    return dict(_parts(block.norm1, block.attn, block.norm2, block.mlp, *values), block=kind)


def _parallel(block: nn.Module) -> dict[str, Any]:
    """A block whose attention and MLP share a norm and a first layer."""
    if block.out_proj is not None or block.attn_out_proj.bias is None or block.mlp_out_proj.bias is None:
        raise ValueError('the branches of its blocks share a projection, or lack a bias')
    norms = [norm for norm in (block.in_norm, block.q_norm, block.k_norm) if not isinstance(norm, nn.Identity)]
    return dict(
        DEFAULTS, block='parallel', num_heads=block.num_heads, num_kv_heads=block.num_heads, qk_norm=len(norms) > 1,
        qkv_bias=block.in_proj.bias is not None, layer_scale_init_value=_value_of(block.ls),
        feedforward_channels=block.mlp_out_proj.in_features, act_cfg=act_of(block.mlp_act),
        norm_cfg=_same('their norms', [norm_of(norm) for norm in norms]))


def _value_of(scale: nn.Module | None) -> float:
    return float(scale.init_values) if isinstance(scale, layers.LayerScale) else 0.


def _parts(norm1: nn.Module, attn: nn.Module, norm2: nn.Module, mlp: nn.Module, scale1: Any,
           scale2: Any) -> dict[str, Any]:
    first, second = (_value_of(scale) if isinstance(scale, nn.Module) else scale for scale in (scale1, scale2))
    if second not in (0., first):
        raise ValueError('the LayerScales of a block start at different values')
    found = dict(DEFAULTS, layer_scale_init_value=first, mlp_layer_scale=second == first)
    read = _attention(attn), _mlp(mlp)
    if read[0]['proj_bias'] != read[1].pop('mlp_bias'):
        raise ValueError("only one of attention's projection and the MLP has a bias")
    norms = [norm_of(norm) for norm in (norm1, norm2)] + [norm for part in read for norm in part.pop('norms')]
    return found | read[0] | read[1] | dict(norm_cfg=_same('their norms', norms))


def _attention(attn: nn.Module) -> dict[str, Any]:
    if not isinstance(attn, ATTENTIONS):
        raise ValueError(f'its attention ({type(attn).__name__}) is not known')
    if getattr(attn, 'gate', None) is not None:
        raise ValueError('its attention is gated')
    differential = isinstance(attn, layers.DiffAttention)
    if differential and (attn.dual_lambda or not isinstance(attn.q_norm, nn.Identity)):
        raise ValueError('its differential attention has norms of queries and keys, or two scalars')
    if attn.proj.in_features != attn.proj.out_features:
        raise ValueError('its heads together are not as wide as its tokens')
    inner = {name: norm for name, norm in (('qk_norm', attn.q_norm), ('attn_norm', attn.norm))
             if not isinstance(norm, nn.Identity)}
    return dict(num_heads=attn.num_heads, num_kv_heads=getattr(attn, 'num_kv_heads', attn.num_heads),
                qkv_bias=_qkv_bias(attn), proj_bias=attn.proj.bias is not None, differential=differential,
                norms=[norm_of(norm) for norm in inner.values()], **dict.fromkeys(inner, True))


def _qkv_bias(attn: nn.Module) -> bool | str:
    if attn.qkv is not None:
        return 'qv' if getattr(attn, 'q_bias', None) is not None else attn.qkv.bias is not None
    match tuple(layer.bias is not None for layer in (attn.q_proj, attn.k_proj, attn.v_proj)):
        case True, True, True:
            return True
        case True, False, True:
            return 'qv'
        case False, False, False:
            return False
    raise ValueError('its queries, keys and values have biases in an unknown combination')


def _mlp(mlp: nn.Module) -> dict[str, Any]:
    if type(mlp) not in (layers.Mlp, *GATED) or getattr(mlp, 'gate_last', False):
        raise ValueError(f'its MLP ({type(mlp).__name__}) is not known')
    is_input = isinstance(mlp, GeGluMlp)
    last = mlp.w2 if is_input else mlp.fc2
    inner: Mapping[str, Any] = {}
    if not isinstance(mlp.norm, nn.Identity):
        inner = dict(mlp_norm='input' if is_input else True)
    biases = {layer.bias is not None for layer in mlp.modules() if isinstance(layer, nn.Linear)}
    if len(biases) > 1:
        raise ValueError('only some layers of its MLP have a bias')
    return dict(feedforward_channels=last.in_features, gated_mlp=type(mlp) in GATED, act_cfg=act_of(mlp.act),
                norms=[norm_of(mlp.norm)] if inner else [], mlp_bias=biases.pop(), **inner)

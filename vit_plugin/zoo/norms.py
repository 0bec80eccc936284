"""Convert timm's norms and activations to our ``norm_cfg`` and ``act_cfg``.

A backbone has both once, in its ``numerics``: a name such as ``'timm'``, or a dict with changes of
one.
"""

from timm import layers
from torch import nn

from vit_plugin.arguments.fields import Section

# Norm and activation of most of timm's models; numerics='timm' stands for them.
TIMM_NORMS = dict(norm_cfg=dict(type='LN', eps=1e-6), act_cfg=dict(type='GELU', approximate='none'))


def differences(numerics: Section) -> str | Section:
    """The ``numerics`` of a model, as ``'timm'`` with the changes that it needs.

    Args:
        numerics: the model's ``norm_cfg`` and ``act_cfg``.
    """
    changes = {name: cfg for name, cfg in numerics.items() if cfg != TIMM_NORMS[name]}
    return dict(base='timm', **changes) if changes else 'timm'


def convert_norm(norm: nn.Module) -> Section:
    """The ``norm_cfg`` of a norm of tokens.

    Raises:
        ValueError: if it is of an unknown kind.
    """
    if isinstance(norm, nn.LayerNorm) and norm.weight is not None and norm.bias is not None:
        return dict(type='LN', eps=norm.eps)
    if isinstance(norm, layers.RmsNorm) and norm.weight is not None:
        return dict(type='RMSN', eps=norm.eps)
    raise ValueError(f'its norm {type(norm).__name__} is not known')


def convert_activation(act: nn.Module) -> Section:
    """The ``act_cfg`` of an activation.

    Raises:
        ValueError: if it is of an unknown kind.
    """
    match type(act).__name__:
        case 'GELU':  # torch's, or timm's, which is exact
            return dict(
                type='GELU', approximate=act.approximate if isinstance(act, nn.GELU) else 'none'
            )
        case 'GELUTanh':
            return dict(type='GELU', approximate='tanh')
        case 'QuickGELU' | 'SiLU' | 'ReLU' as name:
            return dict(type=name)
    raise ValueError(f'its activation {type(act).__name__} is not known')

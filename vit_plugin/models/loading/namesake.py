"""Compare a backbone with the model whose name its weights have.

Weights of another model may have the same shapes: CLIP's, DINO's and MAE's B/16 differ in their
GELU and their eps, and models of other heads or rotary positions fit as well. Tensors do not show
it, but a timm name does.
"""

from dataclasses import asdict
from typing import Any

from torch import nn

from vit_plugin.arch import parse_arch
from vit_plugin.errors import ConfigError

from ..layers.numerics import get_numerics
from ..layers.rotary import TEMPERATURES

PREFIXES = ('timm://', 'hf://timm/')
# The defaults of what positions depend on.
ROTARY = dict(order='yx', planes='neighbours', offset=0.0, native_grid=None)


def compare(backbone: nn.Module, source: str) -> dict[str, Any]:
    """Compare a backbone with the model that a source names.

    Args:
        backbone: a :class:`~vit_plugin.models.VisionTransformer`.
        source: where the weights come from. Only timm names tell more than the tensors.

    Returns:
        The numerics of that model; nothing for other sources.

    Raises:
        ConfigError: if the heads or the rotary positions differ. The weights would be worth
            nothing.
    """
    start = next((prefix for prefix in PREFIXES if source.startswith(prefix)), None)
    if start is None:
        return {}
    name = source.removeprefix(start)
    try:
        theirs = parse_arch(f'timm://{name}')
    except ConfigError:  # no ViT, or one of which not all is known; the tensors decide
        return {}
    arguments = theirs.complete()
    wanted, mine = (
        _structure(*of)
        for of in ((theirs.num_heads, arguments), (backbone.num_heads, backbone.arguments))
    )
    for field, value in wanted.items():
        if mine[field] != value:
            raise ConfigError(
                f'{source} has weights of a model with {field}={value!r}, and this backbone has '
                f'{field}={mine[field]!r}, so they would compute something else; give '
                f"arch='timm://{name}', or change that."
            )
    return asdict(get_numerics(arguments.numerics))


def _structure(num_heads: int, arguments: Any) -> dict[str, Any]:
    """Settings that change the model and have no tensor of their own."""
    rotary = arguments.pos_embed.get('rotary')
    if rotary is not None:
        coordinates: dict[str, Any] = {
            key: rotary.get(key) or default for key, default in ROTARY.items()
        }
        coordinates['native_grid'] = coordinates['native_grid'] and tuple(
            coordinates['native_grid']
        )
        rotary = {
            'form': rotary['form'],
            'temperature': rotary.get('temperature', TEMPERATURES[rotary['form']]),
            **coordinates,
        }
    return {'num_heads': num_heads, 'rotary': rotary}

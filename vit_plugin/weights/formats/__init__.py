"""The naming tables: one :class:`~vit_plugin.weights.rules.Format` for each library's weights.

A format is a list of :class:`~vit_plugin.weights.rules.Rule`, each of which maps a key of theirs to
a key of ours, both with placeholders (:mod:`vit_plugin.weights.patterns`)::

    Rule('layers.{i}.norm1.weight', 'blocks.{i}.norm1.weight')

The first rule that matches a key is used, for reading and for writing; rules with
``written=False`` only read. ``pair``, ``separate_qkv`` and similar functions return several rules.
"""

from collections.abc import Mapping
from pkgutil import resolve_name

from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.project import declared_rows

from ..reading.lazy import Lazy
from ..rules import Format
from .own import OWN

HERE = 'vit_plugin.weights.formats'
# Each format as 'module:name', imported on first use, in the order in which they are tried.
FORMAT_PATHS = {
    'vit_plugin': f'{HERE}.own:OWN',
    'jax': f'{HERE}.jax:JAX',
    'timm': f'{HERE}.timm:TIMM',
    'timm_eva': f'{HERE}.timm:TIMM_EVA',
    'hf': f'{HERE}.hugging_face:HF',
    'hf_deit': f'{HERE}.hugging_face:HF_DEIT',
    'hf_dinov2': f'{HERE}.hugging_face:HF_DINOV2',
    # After DINOv2, of which BEiT's table has all names, too: the first of equals is written.
    'hf_beit': f'{HERE}.hugging_face:HF_BEIT',
    'hf_beit_masked': f'{HERE}.hugging_face:HF_BEIT_MASKED',
    'hf_dinov3': f'{HERE}.hugging_face:HF_DINOV3',
    'hf_pixio': f'{HERE}.hugging_face:HF_PIXIO',
    'hf_siglip': f'{HERE}.hugging_face:HF_SIGLIP',
    'hf_aimv2': f'{HERE}.hugging_face:HF_AIMV2',
    'hf_clip': f'{HERE}.clip:HF_CLIP',
    'torchvision': f'{HERE}.torchvision:TORCHVISION',
    'mmpretrain': f'{HERE}.mmpretrain:MMPRETRAIN',
    'clip': f'{HERE}.clip:CLIP',
    'sapiens2': f'{HERE}.sapiens2:SAPIENS2',
    'vitdet': f'{HERE}.vitdet:VITDET',
    **declared_rows('formats'),
}
FORMATS: Mapping[str, Format] = Lazy(FORMAT_PATHS, lambda name: resolve_name(FORMAT_PATHS[name]))


def export(
    state: Mapping[str, Tensor], family: str, heads: int
) -> tuple[dict[str, Tensor], list[str], Format]:
    """Convert a state dict of ours to another format.

    Args:
        state: the tensors by our names.
        family: the name of a format, or the start of several names. Of several formats, the one
            that leaves out the fewest tensors is used, the first of them.
        heads: the number of attention heads. Only ``'jax'`` needs it.

    Returns:
        The tensors under the names of the format, our names that the format lacks, and the format.

    Raises:
        ConfigError: if there is no such format, or if groups of heads share keys and values, which
            only our own format can hold.
    """
    if family != OWN.name:
        _reject_shared_heads(state)
    names = [name for name in FORMATS if name == family or name.startswith(f'{family}_')]
    if not names:
        raise ConfigError(
            f'There is no format {family!r} of weights; choose one of {", ".join(FORMATS)}.'
        )
    written = ((*FORMATS[name].export(state, heads), FORMATS[name]) for name in names)
    return min(written, key=lambda candidate: len(candidate[1]))  # the fewest tensors left out


def _reject_shared_heads(state: Mapping[str, Tensor]) -> None:
    """Raise a ``ConfigError`` if groups of heads share keys and values."""
    # Then keys and values have fewer rows than queries, in the joint (q + k + v, width).
    attention = [value for key, value in state.items() if key.endswith('.attn.qkv.weight')]
    if any(value.ndim == 2 and value.shape[0] != 3 * value.shape[1] for value in attention):
        raise ConfigError(
            'Heads that share keys and values (num_kv_heads) are only written in the format '
            'vit_plugin.'
        )

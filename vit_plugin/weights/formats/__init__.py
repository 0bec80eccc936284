"""The naming tables: one for each format of a Vision Transformer's weights."""

from collections.abc import Mapping
from pkgutil import resolve_name

from torch import Tensor

from vit_plugin.project import declared

from ..reading.lazy import Lazy
from ..rules import Format
from .clip import CLIP, HF_CLIP
from .eva import reject_unnamed
from .hugging_face import (
    HF,
    HF_AIMV2,
    HF_BEIT,
    HF_BEIT_MASKED,
    HF_DEIT,
    HF_DINOV2,
    HF_DINOV3,
    HF_PIXIO,
    HF_SIGLIP,
)
from .jax import JAX
from .mmpretrain import MMPRETRAIN
from .own import OWN
from .sapiens2 import SAPIENS2
from .timm import TIMM, TIMM_EVA
from .torchvision import TORCHVISION
from .vitdet import VITDET

OWN_FORMATS = {
    form.name: form
    for form in (
        OWN,
        JAX,
        TIMM,
        TIMM_EVA,
        HF,
        HF_DEIT,
        HF_BEIT,
        HF_BEIT_MASKED,
        HF_DINOV2,
        HF_DINOV3,
        HF_PIXIO,
        HF_SIGLIP,
        HF_AIMV2,
        HF_CLIP,
        TORCHVISION,
        MMPRETRAIN,
        CLIP,
        SAPIENS2,
        VITDET,
    )
}
OF_PROJECTS = declared('formats')  # 'module:name', imported on first use
# The formats by name, in the order in which they are tried.
FORMATS: Mapping[str, Format] = Lazy(
    [*OWN_FORMATS, *OF_PROJECTS],
    lambda name: OWN_FORMATS.get(name) or resolve_name(OF_PROJECTS[name]),
)


def export(
    state: Mapping[str, Tensor], family: str, heads: int
) -> tuple[dict[str, Tensor], list[str], Format]:
    """Convert a state dict of ours to another format.

    Args:
        state: the tensors by our names.
        family: the name of a format, or the start of several names. Of several formats, the one
            that leaves out the fewest tensors is used.
        heads: the number of attention heads. Only ``'jax'`` needs it.

    Returns:
        The tensors under the names of the format, our names that the format lacks, and the format.

    Raises:
        ConfigError: if only our own format has names for the model's blocks.
    """
    if family != OWN.name:
        reject_unnamed(state)
    written = (
        (*form.export(state, heads), form)
        for name, form in FORMATS.items()
        if name == family or name.startswith(f'{family}_')
    )
    return min(written, key=lambda candidate: len(candidate[1]))

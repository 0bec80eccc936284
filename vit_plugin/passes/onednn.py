"""Fuse the first layer of an MLP with its GELU by oneDNN, for inference on a CPU.

torch computes one after the other, and so writes and reads the widest tensor of a block twice. The
fused kernel is the private operator ``mkldnn::_linear_pointwise`` of torch's compiler.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules.module import _has_any_global_hook

from vit_plugin.models.layers.mlp import Mlp

from . import processor

# Instruction sets on which it is faster (docs/speed.md).
ONEDNN_INSTRUCTION_SETS = ('AMX', 'AVX-512')
# With fewer multiply-adds, dispatch costs more time than oneDNN saves.
MIN_PRODUCTS = 2**28
# oneDNN keeps memory for each number of rows until the process ends, regardless of its cache
# capacity: 3 to 8 MiB above 512 rows (measured on the MLP of ViT-S), next to nothing below.
MAX_ROWS = 512


def is_available() -> bool:
    """True if this torch has the operator, a private interface."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, '_linear_pointwise')


class OneDnnMlp(Mlp):
    """An MLP whose first layer is fused with the GELU, where that is possible and faster.

    In all other cases it computes as :class:`Mlp`: with gradients, on other devices and dtypes,
    under autocast, in compilers, exporters and transforms, with hooks, with layers of another
    class. Only the layer, the dtype and the number of rows decide which kernel runs, never earlier
    calls.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self._can_fuse(x):
            return super().forward(x)
        rows = x.reshape(-1, self.fc1.in_features)
        parts = rows.tensor_split(len(rows) // MAX_ROWS + 1)  # each has at most MAX_ROWS
        out = torch.cat([self._compute_rows(part) for part in parts])
        return out.view(*x.shape[:-1], out.shape[-1])

    def _compute_rows(self, x: Tensor) -> Tensor:
        """Tokens (N, embed_dims) -> the output of the MLP, with the fused kernel."""
        x = self.input_norm(x)
        padded = F.pad(x, (0, 0, 0, padded_rows(len(x)) - len(x)))
        out = torch.ops.mkldnn._linear_pointwise(
            padded, self.fc1.weight, self.fc1.bias, 'gelu', [], self.act.approximate
        )
        return self.drop(self.fc2(self.norm(self.drop(out[: len(x)]))))

    def _can_fuse(self, x: Tensor) -> bool:
        """True if the fused kernel supports this input and these layers, and is faster."""
        if (
            torch.is_grad_enabled()
            or torch.compiler.is_compiling()
            or torch.jit.is_tracing()
            or type(x) is not Tensor
            or x.device.type != 'cpu'
            or torch.is_autocast_enabled('cpu')
            or torch._C._functorch.is_functorch_wrapped_tensor(x)
            or forward_ad.unpack_dual(x).tangent is not None
        ):
            return False
        if x.dtype not in (torch.float32, torch.bfloat16):
            return False
        if type(self.fc1) is not nn.Linear or type(self.act) is not nn.GELU:
            return False
        if not torch.backends.mkldnn.enabled:
            return False
        if _has_any_global_hook() or any(
            m._forward_pre_hooks or m._forward_hooks for m in (self.fc1, self.act)
        ):
            return False
        if not all(
            type(p) is nn.Parameter
            and p.dtype == x.dtype
            and p.device == x.device
            and p.is_contiguous()
            for p in self.fc1.parameters(recurse=False)
        ):
            return False
        return x.numel() * self.fc1.out_features >= MIN_PRODUCTS


def padded_rows(rows: int) -> int:
    """The next number of rows with at most five significant bits, at most a sixteenth larger.

    This leaves oneDNN 17 sizes from 256 to 512 rows.
    """
    step = 1 << max(rows.bit_length() - 5, 0)
    return -(-rows // step) * step


def use_onednn(model: nn.Module) -> None:
    """Turn a model's MLPs into :class:`OneDnnMlp` in place, where that is faster."""
    if processor.instruction_set() in ONEDNN_INSTRUCTION_SETS:
        convert_mlps(model)


def convert_mlps(model: nn.Module) -> None:
    """Convert the MLPs on any processor that oneDNN supports."""
    if is_available():
        for module in model.modules():
            if type(module) is Mlp:
                module.__class__ = OneDnnMlp


def use_torch(model: nn.Module) -> None:
    """Undo :func:`use_onednn`."""
    for module in model.modules():
        if type(module) is OneDnnMlp:
            module.__class__ = Mlp

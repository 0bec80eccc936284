"""Check that the maps of other libraries' models have the sizes that their strides state."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

# Image sides to try, in units of the largest stride. Some models pad odd sizes, others only take
# 224.
TRIED_SIDES = ((3, 5), (7, 7))


def find_size_mismatch(model: nn.Module, strides: Sequence[int], in_channels: int = 3) -> str:
    """Compare a model's maps with its strides, on the meta device, where nothing is computed.

    Args:
        model: images (B, in_channels, H, W) -> a map (B, C, H / stride, W / stride) for each
            stride.
        strides: pixels per element of each map, as stated.
        in_channels: channels of the images.

    Returns:
        A description of the first difference, or ''. Sizes that the model rejects are skipped.
    """
    for rows, columns in TRIED_SIDES:
        height, width = rows * max(strides), columns * max(strides)
        # There is no map of an image that the model rejects.
        for feature_map, stride in zip(
            maps_of(model, in_channels, height, width), strides, strict=False
        ):
            rounded_down = height // stride, width // stride
            rounded_up = -(-height // stride), -(-width // stride)
            h, w = feature_map.shape[-2:]
            if (h, w) not in (rounded_up, rounded_down):
                return (
                    f'maps of {h} x {w} for images of {height} x {width}, where its stride of '
                    f'{stride} states {rounded_up[0]} x {rounded_up[1]}'
                )
    return ''


def maps_of(model: nn.Module, *shape: int) -> Sequence[Tensor]:
    """The maps of two images of this shape (C, H, W), on the meta device. () if rejected."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    state = {name: torch.empty_like(tensor, device='meta') for name, tensor in tensors}
    training = model.training
    model.eval()
    try:
        # The CPU also if the caller is in the meta device's context: some models create tensors in
        # their forward.
        with torch.device('cpu'), torch.no_grad():
            return functional_call(model, state, (torch.empty(2, *shape, device='meta'),))
    except Exception:  # noqa: BLE001  timm's models raise various errors for sizes they reject
        return ()
    finally:
        model.train(training)

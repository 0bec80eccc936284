"""Build tiny real-time detectors (D-FINE and its relatives), and compare their outputs.

`authors_state` renames their weights as in the authors' files, so that tests can read these back.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.projects.d_fine.authors_names import AUTHORS
from vit_plugin.weights.recognition import recognize

HGNET = dict(
    type='vit_plugin.HGNetV2',
    arch=dict(
        stem=(4, 8),
        stages=[
            (8, 4, 8, 1, False, False, 3, 2),
            (8, 4, 8, 1, True, False, 3, 2),
            (8, 4, 16, 1, True, True, 5, 1),
            (16, 4, 24, 2, True, True, 5, 2),
        ],
    ),
)
HGNET_CHANNELS = [8, 16, 24]


def built(settings: dict[str, Any]) -> nn.Module:
    """A detector with random weights and statistics, which keep the scale of its feature maps."""
    import mmdet.models  # noqa: F401
    from mmengine.registry import MODELS, init_default_scope

    init_default_scope('mmdet')
    torch.manual_seed(0)
    model = MODELS.build(settings).eval()
    for name, value in model.state_dict().items():
        if name.endswith('running_var'):
            value.uniform_(0.5, 1.5)
        elif value.is_floating_point() and value.numel() > 1:
            value.normal_(std=min(0.3, value[0].numel() ** -0.5))
    return model


def authors_state(model: nn.Module, points: Sequence[int]) -> dict[str, Tensor]:
    """The state dict by the authors' names, with the ``num_points_scale`` of two decoder layers.

    ``points`` are the numbers of sampling points of each level.
    """
    recognized = recognize(model.state_dict())
    assert recognized.is_own
    state, unexported = AUTHORS.export(dict(recognized), heads=1)
    assert not unexported
    scales = torch.tensor([1 / number for number in points for _ in range(number)])
    for i in range(2):
        state[f'decoder.decoder.layers.{i}.cross_attn.num_points_scale'] = scales
    return state


def assert_same_outputs(loaded: nn.Module, model: nn.Module) -> None:
    """Assert that two detectors give the same logits, boxes and masks for a rectangular image."""
    images = torch.rand(1, 3, 128, 192)
    with torch.no_grad():
        pairs = zip(_outputs(loaded, images), _outputs(model, images), strict=True)
    for actual, expected in pairs:
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-5)


def _outputs(model: nn.Module, images: Tensor) -> tuple[Tensor, ...]:
    """Logits and boxes of the last layer, and masks if the head has them."""
    maps = model.extract_feat(images)
    output = model.bbox_head(maps)
    masks = getattr(model.bbox_head, 'masks_of', None)
    return (
        output.logits[-1],
        output.boxes[-1],
        *([masks(maps, output.features[-1])] if masks else []),
    )

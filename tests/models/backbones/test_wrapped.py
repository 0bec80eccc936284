"""What backbones of other libraries share: frozen parts, output indices, and checked strides."""

import pytest
from rejection import rejects
from torch import Tensor, nn

from vit_plugin.models.backbones.wrapped import WrappedBackbone


class Wrapped(WrappedBackbone):
    def __init__(self) -> None:
        super().__init__(None)
        self.first, self.second, self.frozen = nn.Dropout(), nn.Dropout(), ('first',)


def test_frozen_parts_stay_in_eval_mode():
    model = Wrapped().train()
    assert (model.training, model.first.training, model.second.training) == (True, False, True)


@pytest.mark.parametrize(('out_indices', 'expected'), [(-1, {3}), ((0, -1, 3), {0, 3})])
def test_out_indices_are_counted_from_0(out_indices, expected):
    assert Wrapped().check_out_indices(out_indices, 4, 'x has 4 stages') == expected


@pytest.mark.parametrize('out_indices', [4, (0, -5)])
def test_out_indices_out_of_range_raise(out_indices):
    with rejects(r'Wrapped: out_indices=.* is out of range: x has 4 stages, -4 to 3\.'):
        Wrapped().check_out_indices(out_indices, 4, 'x has 4 stages')


class Halved(WrappedBackbone):
    """Returns a map of half the sides of the images."""

    def __init__(self, stride: int, out_type: str) -> None:
        super().__init__(None)
        self.out_type, self.in_channels, self.strides = out_type, 2, (stride,)
        self.layer = nn.Conv2d(2, 1, 2, stride=2)

    def forward(self, images: Tensor) -> tuple[Tensor]:
        return (self.layer(images),)


@pytest.mark.parametrize(
    ('stride', 'out_type', 'count'), [(2, 'featmap', 0), (4, 'featmap', 1), (4, 'pooled', 0)]
)
def test_a_map_with_another_size_than_its_stride_states_is_logged(
    stride, out_type, count, monkeypatch
):
    messages = []
    monkeypatch.setattr(
        'vit_plugin.models.backbones.wrapped.print_log',
        lambda message, *args: messages.append(message),
    )
    Halved(stride, out_type).warn_of_other_strides('net')
    wanted = (
        'Halved net returns maps of 6 x 10 for images of 12 x 20, where its stride of 4 states '
        '3 x 5: take another model for boxes and masks.'
    )
    assert messages == [wanted] * count

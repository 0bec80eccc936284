"""A config of transformers' HGNetV2 that is not valid raises an error that names the field."""

import pytest
from rejection import rejects

from vit_plugin.projects.d_fine.d_fine_kinds import D_FINE_KIND, HGNET_V2_KIND
from vit_plugin.projects.d_fine.published_hgnet import convert_hgnet
from vit_plugin.weights.foreign_config import ForeignConfig


@pytest.mark.parametrize('channels', [[], [3, 32], [1, 32, 48]])
def test_other_stem_channels_raise(channels):
    cnn = ForeignConfig(dict(stem_channels=channels), HGNET_V2_KIND)
    with rejects('stem_channels=.*, where three numbers are expected'):
        convert_hgnet(cnn, ForeignConfig({}, D_FINE_KIND))


def test_default_config_is_converted():
    backbone, channels = convert_hgnet(
        ForeignConfig({}, HGNET_V2_KIND), ForeignConfig({}, D_FINE_KIND)
    )
    assert backbone['arch']['stem'] == [32, 48]
    assert channels == [2048]

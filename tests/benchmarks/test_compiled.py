"""The compared forms of a training step compute the same."""

import pytest
import torch
import torch.nn.functional as F

from benchmarks.compiled import FORMS, build, group_norm
from benchmarks.measuring.compare import Case

# Raised when Dynamo reads inputs.
pytestmark = pytest.mark.filterwarnings('ignore:The .grad attribute')
CASE = Case('R+Ti/16', 32, 2, 'train')


def test_group_norm_by_channels_equals_torch():
    x, weight, bias = torch.randn(2, 12, 3, 5), torch.randn(12), torch.randn(12)
    by_channels, by_torch = (norm(x, 4, weight, bias, 1e-3) for norm in (group_norm, F.group_norm))
    torch.testing.assert_close(by_channels, by_torch)


@pytest.mark.nightly
@pytest.mark.parametrize('form', FORMS)
def test_each_form_equals_the_eager_model(form):
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(
        build(CASE, form, tiny=True)(images), build(CASE, 'eager', tiny=True)(images)
    )

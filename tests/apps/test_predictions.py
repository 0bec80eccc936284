import torch

from vit_plugin.apps.predictions import names_of


def test_classes_of_one_name_have_their_numbers():
    assert names_of(torch.tensor([2, 1, 5]), ['crane', 'cat', 'crane']) == ['crane (2)', 'cat', '5']

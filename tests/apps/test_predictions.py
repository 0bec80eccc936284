import json

import torch

from vit_plugin.apps.predictions import names_of, save_predictions


def test_classes_of_one_name_have_their_numbers():
    assert names_of(torch.tensor([2, 1, 5]), ['crane', 'cat', 'crane']) == ['crane (2)', 'cat', '5']


def test_rows_are_written_as_json_and_csv(tmp_path):
    rows = {'a.png': [{'class': 'cat', 'score': 0.5}], 'b.png': []}
    save_predictions(tmp_path / 'found.json', rows)
    assert json.loads((tmp_path / 'found.json').read_text()) == rows
    save_predictions(tmp_path / 'found.csv', rows)
    assert (tmp_path / 'found.csv').read_text().splitlines() == ['image,class,score', 'a.png,cat,0.5']

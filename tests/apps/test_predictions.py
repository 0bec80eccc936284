import json

import numpy as np
import torch
from mmengine.structures import BaseDataElement

from vit_plugin.apps.predictions import DumpJson, plain


def test_predictions_are_written_as_json(tmp_path):
    dump = DumpJson(str(tmp_path / 'out.json'))
    sample = BaseDataElement(pred_score=torch.tensor([0.25, 0.75]), metainfo=dict(img_path='a.png'))
    dump.process({}, [sample.to_dict()])
    dump.evaluate(1)
    assert json.loads((tmp_path / 'out.json').read_text())[0]['pred_score'] == [0.25, 0.75]
    assert not (tmp_path / 'out.json.pkl').exists()


def test_everything_becomes_plain():
    assert plain({1: (np.float32(2), b'3', None, {4})}) == {'1': [2.0, '3', None, '{4}']}

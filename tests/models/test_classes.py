"""Compare the classes of the data with those of the heads."""

import pytest
import torch
from rejection import rejects
from tiny_models import classifier

from vit_plugin.engine import Runner
from vit_plugin.models.classes import check_classes, check_head


class Head(torch.nn.Module):
    """A head that only states its number of classes."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.num_classes = num_classes


@pytest.mark.parametrize(
    ('heads', 'field'),
    [
        ({'head': Head(1000)}, 'model.head.num_classes=1000'),
        (
            {
                'roi_head': torch.nn.ModuleDict(
                    {'bbox_head': torch.nn.ModuleList([Head(3), Head(80)])}
                )
            },
            'model.roi_head.bbox_head.1.num_classes=80',
        ),
        ({'decode_head': Head(2)}, 'model.decode_head.num_classes=2'),
    ],
)
def test_heads_for_other_numbers_of_classes_raise(heads, field):
    meta = dict(classes=('a', 'b', 'c'))
    with rejects(rf'{field} does not fit the data with 3 classes: set it to 3'):
        check_classes(torch.nn.ModuleDict(heads), meta, 'the data')
    check_classes(torch.nn.ModuleDict({'head': Head(3), 'rpn_head': Head(1)}), meta, 'the data')
    check_classes(torch.nn.ModuleDict(heads), {}, 'the data')


def test_depth_heads_are_not_compared():
    head = Head(1)
    head.task = 'depth'
    check_classes(torch.nn.ModuleDict({'decode_head': head}), dict(classes=('a', 'b')), 'NYU')


def test_classes_that_are_not_a_list_raise():
    with rejects('The classes of the data must be a list of names, but are 3'):
        check_classes(torch.nn.ModuleDict({'head': Head(3)}), dict(classes=3), 'the data')


@pytest.mark.filterwarnings('ignore')
def test_runs_with_a_head_for_other_classes_end_before_the_first_step(digits_config):
    digits_config.merge_from_dict(
        {'model.head.num_classes': 1000, 'model.head.loss.num_classes': 1000}
    )
    with rejects('model.head.num_classes=1000 does not fit the data set, a Digits with 10'):
        Runner.from_cfg(digits_config).train()


def test_a_classifier_without_a_head_raises(tiny):
    check_head(classifier(tiny))
    with rejects('model.head is None, but ImageClassifier computes losses'):
        check_head(classifier(tiny, classes=0))

"""Compare the classes of the data with those of the heads."""

import pytest
import torch
from rejection import rejects
from tiny_models import classifier

from vit_plugin.engine import Runner
from vit_plugin.models.classes import check_classes, check_head, keep_classifier


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


def segmentor() -> torch.nn.Module:
    """The last layers of a segmentor with one head, and two auxiliary heads."""
    head, *auxiliary = (
        torch.nn.ModuleDict(
            {'conv_seg': torch.nn.Conv2d(4, 2, 1), 'conv': torch.nn.Conv2d(4, 4, 1)}
        )
        for _ in range(3)
    )
    return torch.nn.ModuleDict(
        {'decode_head': head, 'auxiliary_head': torch.nn.ModuleList(auxiliary)}
    )


def test_the_classifiers_of_a_segmentor_are_kept():
    model, weights = segmentor(), segmentor().state_dict()
    kept = keep_classifier(model, weights)
    assert {name.rpartition('.')[0] for name in kept} == {
        'decode_head.conv_seg',
        'auxiliary_head.0.conv_seg',
        'auxiliary_head.1.conv_seg',
    }
    assert all(torch.equal(weights[name], model.state_dict()[name]) for name in kept)
    model['decode_head'].task = 'depth'
    assert not any('decode_head' in name for name in keep_classifier(model, weights))


def test_all_classifiers_of_a_segmentors_head_are_kept():
    point, dual = torch.nn.Module(), torch.nn.Module()
    point.fc_seg, point.fcs = torch.nn.Conv1d(4, 2, 1), torch.nn.Conv1d(4, 4, 1)
    dual.conv_seg, dual.pam_conv_seg = torch.nn.Conv2d(4, 2, 1), torch.nn.Conv2d(4, 2, 1)
    dual.cls_emb = torch.nn.Parameter(torch.zeros(1, 2, 4))
    model = torch.nn.ModuleDict({'decode_head': torch.nn.ModuleList([dual, point])})
    kept = keep_classifier(model, model.state_dict())
    assert {*model.state_dict()} - {*kept} == {
        'decode_head.1.fcs.weight',
        'decode_head.1.fcs.bias',
    }


def test_the_classifiers_of_mmdetections_heads_are_kept():
    stage, shared = torch.nn.Module(), torch.nn.Linear(4, 2)
    stage.fc_cls, stage.fc_reg = torch.nn.Linear(4, 3), torch.nn.Linear(4, 8)
    model = torch.nn.ModuleDict(
        {
            'roi_head': torch.nn.ModuleDict({'bbox_head': torch.nn.ModuleList([stage])}),
            'bbox_head': torch.nn.ModuleDict({'cls_branches': torch.nn.ModuleList([shared] * 2)}),
        }
    )
    kept = keep_classifier(model, model.state_dict())
    assert {name.rpartition('.')[0] for name in kept} == {
        'roi_head.bbox_head.0.fc_cls',
        'bbox_head.cls_branches.0',
        'bbox_head.cls_branches.1',
    }


def test_pre_logits_as_wide_as_the_number_of_classes_are_no_classifier(tiny):
    model, trained = classifier(tiny, hidden_dim=3), classifier(tiny, hidden_dim=3)
    kept = keep_classifier(model, trained.state_dict())
    assert kept == ['head.layers.head.weight', 'head.layers.head.bias']


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

"""DeiT's head: losses by the paper's formulas, and MMPretrain's outputs."""

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.structures import DataSample
from rejection import rejects

from vit_plugin.models import DistilledViTClsHead

SAMPLES = [DataSample().set_gt_label(label) for label in (0, 3, 1)]


def head(**kwargs) -> DistilledViTClsHead:
    head = DistilledViTClsHead(5, 16, **kwargs)
    torch.nn.init.normal_(head.layers.head.weight)
    torch.nn.init.normal_(head.layers.head_dist.weight)
    return head


def test_classifiers_of_both_tokens_are_averaged():
    model, tokens = head(), torch.randn(3, 7, 16)
    first, second = model.layers.head(tokens[:, 0]), model.layers.head_dist(tokens[:, 1])
    torch.testing.assert_close(model((tokens,)), (first + second) / 2)


def test_both_classifiers_start_with_the_prior_probability():
    logits = DistilledViTClsHead(5, 16, prior_prob=0.01)((torch.zeros(3, 7, 16),))
    torch.testing.assert_close(logits.sigmoid(), torch.full((3, 5), 0.01))


def test_lists_of_tokens_give_mmpretrains_outputs():
    from mmpretrain.models import DeiTClsHead

    model, (patches, first, second) = head(), torch.randn(3, 2, 16)
    theirs = DeiTClsHead(5, 16).eval()
    theirs.load_state_dict(model.state_dict())
    for feature in ([patches, first, second], (first, second)):
        torch.testing.assert_close(model((feature,)), theirs((feature,)))


def test_losses_equal_the_papers_formulas():
    tokens, teacher = torch.randn(3, 7, 16), torch.randn(3, 5)
    labels = torch.tensor([0, 3, 1])
    for distillation in ('hard', 'soft', 'none'):
        model = head(distillation=distillation, alpha=0.3, tau=2.0)
        class_logits, distillation_logits = model.classify((tokens,))
        expected = {
            'hard': lambda s: F.cross_entropy(s, teacher.argmax(1)),
            'soft': lambda s: (
                4  # tau squared
                * (
                    F.softmax(teacher / 2, 1)
                    * (F.log_softmax(teacher / 2, 1) - F.log_softmax(s / 2, 1))
                )
                .sum(1)
                .mean()
            ),
            'none': lambda s: F.cross_entropy(s, labels),
        }[distillation](distillation_logits)
        losses = model.loss((tokens,), SAMPLES, teacher=teacher)
        torch.testing.assert_close(losses['loss'], 0.7 * F.cross_entropy(class_logits, labels))
        torch.testing.assert_close(losses['loss_distillation'], 0.3 * expected)


@pytest.mark.parametrize(
    ('call', 'words'),
    [
        (
            lambda: DistilledViTClsHead(5, 16, distillation='warm'),
            "distillation='warm' must be 'hard', 'soft' or 'none'",
        ),
        (
            lambda: DistilledViTClsHead(5, 16, hidden_dim=16),
            'hidden_dim is the width of pre-logits',
        ),
        (lambda: head()((torch.randn(3, 16),)), r'takes tokens \(B, N, in_channels=16\)'),
        (lambda: head().loss((torch.randn(3, 7, 16),), SAMPLES), 'needs a teacher'),
    ],
)
def test_invalid_input_raises(call, words):
    with rejects(words):
        call()

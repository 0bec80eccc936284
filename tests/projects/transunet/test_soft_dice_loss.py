"""The Dice loss of TransUNet, compared with the authors' formula."""

import pytest
import torch
import torch.nn.functional as F
from rejection import rejects

from vit_plugin.models import SoftDiceLoss


def authors_loss(logits, labels, weight):
    """The loss of TransUNet's code, computed class by class."""
    p, num_classes, loss = logits.softmax(1), logits.shape[1], 0
    for c in range(num_classes):
        t = (labels == c).to(p.dtype)
        overlap, areas = (p[:, c] * t).sum(), (p[:, c] ** 2).sum() + t.sum()
        loss += weight[c] * (1 - (2 * overlap + 1e-5) / (areas + 1e-5))
    return loss / num_classes


@pytest.fixture
def pixels():
    torch.manual_seed(0)
    return torch.randn(2, 4, 6, 5, dtype=torch.float64), torch.randint(4, (2, 6, 5))


def test_loss_equals_the_authors(pixels):
    torch.testing.assert_close(SoftDiceLoss()(*pixels), authors_loss(*pixels, [1] * 4))
    weights = [0, 1, 2.5, 0.5]
    loss = SoftDiceLoss(class_weight=weights, loss_weight=0.5)(*pixels)
    torch.testing.assert_close(loss, 0.5 * authors_loss(*pixels, weights))


def test_ignored_pixels_change_nothing(pixels):
    logits, labels = pixels
    cut = SoftDiceLoss()(logits[:, :, :4], labels[:, :4])
    labels = labels.clone()
    labels[:, 4:] = 255
    logits.requires_grad_()
    loss = SoftDiceLoss()(logits, labels, ignore_index=255)
    torch.testing.assert_close(loss, cut)
    loss.backward()
    assert not logits.grad[:, :, 4:].any()
    assert logits.grad[:, :, :4].any()


def test_pixels_of_weight_zero_are_ignored(pixels):
    logits, labels = pixels
    weight = torch.zeros(2, 6, 5)
    weight[:, :4] = 1
    torch.testing.assert_close(
        SoftDiceLoss()(logits, labels, weight=weight),
        SoftDiceLoss()(logits[:, :, :4], labels[:, :4]),
    )


def test_single_logit_equals_two_classes(pixels):
    logits, labels = pixels[0][:, :1], pixels[1].clamp(max=1)
    both = torch.cat((torch.zeros_like(logits), logits), 1)
    foreground = SoftDiceLoss(class_weight=[0, 2])(both, labels)
    torch.testing.assert_close(SoftDiceLoss()(logits, labels), foreground)


def test_perfect_and_absent_classes_have_no_loss(pixels):
    labels = pixels[1].clamp(max=2)  # class 3 is absent
    logits = 100 * F.one_hot(labels, 4).permute(0, 3, 1, 2).double()
    assert SoftDiceLoss()(logits, labels) < 1e-6
    assert SoftDiceLoss()(logits.half(), labels).dtype == torch.float32


def test_wrong_number_of_class_weights_raises(pixels):
    with rejects('class_weight has 2 values, but the head has 4 classes'):
        SoftDiceLoss(class_weight=[1, 2])(*pixels)


def test_name_without_loss_raises():
    with rejects("loss_name='dice' must match pattern"):
        SoftDiceLoss(loss_name='dice')

"""The sigmoid focal loss equals the equation of its paper, with gradients."""

import pytest
import torch


def loss_by_equation(logits, target, gamma, alpha, weight=None):
    """Arxiv 1708.02002, Eq. 5, with a one-hot target; the last class is background."""
    is_true = torch.nn.functional.one_hot(target, logits.shape[1] + 1)[:, :-1].bool()
    p = torch.where(is_true, logits.sigmoid(), 1 - logits.sigmoid())
    loss = -torch.where(is_true, logits.new_tensor(alpha), 1 - alpha) * (1 - p) ** gamma * p.log()
    if weight is not None:
        loss = loss * torch.cat([weight, weight.new_ones(1)])[target][:, None]
    return loss


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize(('gamma', 'alpha'), [(2.0, 0.25), (0.0, 0.5), (0.5, 0.7)])
@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
def test_values_and_gradients_equal_the_equation(reduction, gamma, alpha, weighted):
    from mmcv.ops import sigmoid_focal_loss

    target = torch.tensor([0, 3, 1, 2, 3])
    weight = torch.tensor([0.5, 2, 3], dtype=torch.float64) if weighted else None
    grads = []
    for function in ('op', 'equation'):
        logits = torch.linspace(-4, 4, 15, dtype=torch.float64).reshape(5, 3).requires_grad_()
        if function == 'op':
            loss = sigmoid_focal_loss(logits, target, gamma, alpha, weight, reduction)
        else:
            loss = loss_by_equation(logits, target, gamma, alpha, weight)
            loss = {'none': loss, 'mean': loss.sum() / 5, 'sum': loss.sum()}[reduction]
        (loss * loss.detach()).sum().backward()  # so that the gradients of the terms differ
        grads.append((loss, logits.grad))
    torch.testing.assert_close(*grads)


def test_large_logits_stay_finite():
    from mmcv.ops import sigmoid_focal_loss

    logits = torch.tensor([[-200.0, 200.0]], requires_grad=True)
    loss = sigmoid_focal_loss(logits, torch.tensor([0]), 2.0, 0.25, None, 'none')
    loss.sum().backward()
    torch.testing.assert_close(loss, torch.tensor([[50.0, 150.0]]))
    torch.testing.assert_close(logits.grad, torch.tensor([[-0.25, 0.75]]))

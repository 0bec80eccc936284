import math

import pytest
import torch


def focal_loss(logits, target, gamma, alpha, weight=None):
    """Arxiv 1708.02002, Eq. 5, with the one-hot target written out; the last class is background."""
    hit = torch.nn.functional.one_hot(target, logits.shape[1] + 1)[:, :-1].bool()
    p = torch.where(hit, logits.sigmoid(), 1 - logits.sigmoid())
    loss = -torch.where(hit, logits.new_tensor(alpha), 1 - alpha) * (1 - p)**gamma * p.log()
    return loss if weight is None else loss * torch.cat([weight, weight.new_ones(1)])[target][:, None]


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize(('gamma', 'alpha'), [(2.0, 0.25), (0.0, 0.5), (0.5, 0.7)])
@pytest.mark.parametrize('reduction', ['none', 'mean', 'sum'])
def test_values_and_gradients(reduction, gamma, alpha, weighted):
    from mmcv.ops import sigmoid_focal_loss
    target = torch.tensor([0, 3, 1, 2, 3])
    weight = torch.tensor([0.5, 2, 3], dtype=torch.float64) if weighted else None
    grads = []
    for function in ('ours', 'formula'):
        logits = torch.linspace(-4, 4, 15, dtype=torch.float64).reshape(5, 3).requires_grad_()
        if function == 'ours':
            loss = sigmoid_focal_loss(logits, target, gamma, alpha, weight, reduction)
        else:
            loss = focal_loss(logits, target, gamma, alpha, weight)
            loss = {'none': loss, 'mean': loss.sum() / 5, 'sum': loss.sum()}[reduction]
        (loss * loss.detach()).sum().backward()  # another gradient from above for each term
        grads.append((loss, logits.grad))
    torch.testing.assert_close(*grads)


def test_large_logits_stay_finite():
    from mmcv.ops import sigmoid_focal_loss
    logits = torch.tensor([[-200., 200.]], requires_grad=True)
    loss = sigmoid_focal_loss(logits, torch.tensor([0]), 2.0, 0.25, None, 'none')
    loss.sum().backward()
    torch.testing.assert_close(loss, torch.tensor([[50., 150.]]))
    torch.testing.assert_close(logits.grad, torch.tensor([[-0.25, 0.75]]))


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize(('gamma', 'alpha'), [(2.0, 0.25), (0.0, 1.0), (0.5, 0.7)])
@pytest.mark.parametrize('reduction', ['mean', 'sum'])
def test_of_a_softmax(reduction, gamma, alpha, weighted):
    """mmcv's own gradient for ``reduction='none'`` does not fit its shapes."""
    from mmcv.ops import softmax_focal_loss
    target = torch.tensor([0, 2, 1, 2, -1])
    weight = torch.tensor([0.5, 2, 3], dtype=torch.float64) if weighted else None
    grads = []
    for function in ('ours', 'formula'):
        logits = torch.linspace(-4, 4, 15, dtype=torch.float64).sin().mul(3).reshape(5, 3).requires_grad_()
        if function == 'ours':
            loss = softmax_focal_loss(logits, target, gamma, alpha, weight, reduction)
        else:
            p = logits.softmax(dim=1)[range(4), target[:4]]  # the last has no class
            loss = -alpha * (1 - p)**gamma * p.log() * (1 if weight is None else weight[target[:4]])
            loss = loss.sum() / (5 if reduction == 'mean' else 1)
        loss.backward()
        grads.append((loss, logits.grad))
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize('gamma', [0.5, 2.0])
def test_a_certain_softmax_stays_finite(gamma):
    from mmcv.ops import softmax_focal_loss
    logits = torch.tensor([[200., -200.], [200., -200.]], requires_grad=True)
    loss = softmax_focal_loss(logits, torch.tensor([0, 1]), gamma, 1., None, 'sum')
    loss.backward()
    assert loss.item() == pytest.approx(-math.log(torch.finfo(torch.float32).tiny))  # log of the smallest number
    assert logits.grad.isfinite().all()
    assert not logits.grad[0].any()

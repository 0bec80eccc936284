"""The optimizer Muon, which orthogonalizes the momentum of each weight matrix before a step.

A step then has about the same size in all directions of the matrix.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from vit_plugin.arguments import Signature, as_config_error, check
from vit_plugin.arguments.fields import Depth, Eps, NotNegative, Rate
from vit_plugin.registry import OPTIMIZERS

# Coefficients of the quintic iteration: small singular values grow fast, and all end between 0.7
# and 1.2.
QUINTIC = (3.4445, -4.7750, 2.0315)
GRAM_RATIO = 2  # columns per row from which the Gram matrix pays off
RMS = 0.2  # RMS of AdamW's steps, measured by Liu et al. (arXiv:2502.16982)
MIN_NORM = 1e-7  # least norm by which a matrix is divided
# YAML and --cfg-options give lists.
Betas = Annotated[Sequence[Rate], Field(min_length=2, max_length=2)]
# Entries that torch, and MMEngine's custom_keys, add to a group. They are not options of Muon.
FOREIGN_ENTRIES = ('param_names', 'lr_mult', 'decay_mult')


def orthogonalize(matrix: Tensor, steps: int = 5, eps: float = MIN_NORM) -> Tensor:
    """The nearest matrix with all singular values about 1, by the Newton-Schulz iteration.

    It is computed in bfloat16 on a GPU, as the authors do, and in float32 elsewhere. Few CPUs
    compute in bfloat16.

    Args:
        matrix: a matrix of shape (m, n). All ranks of a sharded matrix compute it together.
        steps: number of iterations.
        eps: least norm by which the matrix is divided.
    """
    x = matrix.to(torch.bfloat16 if matrix.is_cuda else torch.float32)
    is_tall = x.shape[0] > x.shape[1]
    x = x.mT if is_tall else x
    x = x / x.norm().clamp(min=eps)
    a, b, c = QUINTIC
    # On a GPU, x is bfloat16, which is too imprecise for the products of the Gram matrix.
    if x.is_cuda or x.shape[1] < GRAM_RATIO * len(x):
        for _ in range(steps):
            square = x @ x.mT
            x = a * x + (b * square + c * square @ square) @ x
    else:
        x = _through_gram_matrix(x, steps)
    return (x.mT if is_tall else x).to(matrix.dtype)


def _through_gram_matrix(x: Tensor, steps: int) -> Tensor:
    """:func:`orthogonalize` a wide matrix with fewer operations.

    All factors are polynomials of ``x @ x.mT``. So they commute, and are multiplied with one
    another before they are multiplied with ``x``. Their squares need the precision of float32.
    """
    a, b, c = QUINTIC
    gram = x @ x.mT
    factor = b * gram + c * gram @ gram  # plus a times the identity
    # The product of the factors is scale times the identity, plus remainder.
    scale, remainder = a, factor
    for _ in range(steps - 1):
        half = a * gram + factor @ gram
        gram = a * half + factor @ half
        factor = b * gram + c * gram @ gram
        remainder = a * remainder + scale * factor + factor @ remainder
        scale *= a
    return scale * x + remainder @ x


@OPTIMIZERS.register_module()
class Muon(Optimizer):
    """Muon for the weights of linear layers and convolutions, AdamW for all other parameters.

    The step of a matrix is its momentum, made orthogonal by :func:`orthogonalize` (K. Jordan et
    al., "Muon: An optimizer for hidden layers in neural networks", 2024). It is scaled so that its
    root mean square is that of AdamW's steps (arXiv:2502.16982, Section 2.2). So a learning rate
    and weight decay of AdamW are a good start for both. A convolution is a matrix with a row for
    each output channel. A step costs about ``30 * m`` operations for each element of the matrix,
    where m is the number of its rows or columns, whichever are fewer; on a CPU about half of that
    if it has four times as many columns as rows or vice versa. Embeddings of positions and tokens
    have three dimensions, and count as other parameters.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        momentum: decay of a matrix's momentum, which is Nesterov's.
        weight_decay: decoupled weight decay, multiplied by the learning rate.
        steps: number of iterations that make a step orthogonal.
        betas, eps: those of AdamW, for parameters that are not matrices.
        fixed_norm: whether each step first scales the matrix to the norm of one with rows of norm
            1, in place of weight decay. For filters that are standardized or followed by a
            normalization, since their scale only changes the relative size of later steps. The
            learning rate then determines how far they turn, until the end of training (K. Jordan,
            cifar10-airbench, 2024). Usually set for a part of the model, in
            ``paramwise_cfg.custom_keys``.

    Raises:
        ConfigError: if there are no parameters, or if a group has an unknown or invalid option.
    """

    def __init__(
        self,
        params: Any,
        lr: NotNegative = 1e-3,
        momentum: Rate = 0.95,
        weight_decay: NotNegative = 0.01,
        steps: Depth = 5,
        betas: Betas = (0.9, 0.99),
        eps: Eps = 1e-8,
        fixed_norm: bool = False,
    ) -> None:
        with as_config_error('Muon: params'):
            super().__init__(
                params,
                dict(
                    lr=lr,
                    momentum=momentum,
                    weight_decay=weight_decay,
                    steps=steps,
                    betas=betas,
                    eps=eps,
                    fixed_norm=fixed_norm,
                ),
            )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """See torch's optimizers. The options of a group are checked as the arguments are."""
        if isinstance(param_group, dict):
            options = {
                name: value for name, value in param_group.items() if name not in FOREIGN_ENTRIES
            }
            check('Muon: params', Signature.of(Muon), (), options)
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """See torch's optimizers."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            trained = [parameter for parameter in group['params'] if parameter.grad is not None]
            for parameter in trained:
                if parameter.ndim in (2, 4):
                    self._step_matrix(parameter, group)
            self._step_others(
                [parameter for parameter in trained if parameter.ndim not in (2, 4)], group
            )
        return loss

    def _step_matrix(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state, momentum = self.state[parameter], group['momentum']
        if not state:
            state['momentum'] = torch.zeros_like(parameter)
        grad = torch.as_tensor(parameter.grad)  # for the type checker: it is not None here
        state['momentum'].lerp_(grad, 1 - momentum)
        nesterov = grad.lerp(state['momentum'], momentum).flatten(1)
        step = orthogonalize(nesterov, group['steps']).view_as(parameter)
        if group['fixed_norm']:
            # Zeros, such as the second factor of a new adapter, stay zeros.
            parameter.mul_(len(parameter) ** 0.5 / parameter.norm().clamp(min=MIN_NORM))
        else:
            parameter.mul_(1 - group['lr'] * group['weight_decay'])
        # An orthogonal matrix has an RMS of 1 / sqrt(its longer side).
        parameter.add_(step, alpha=-group['lr'] * RMS * max(nesterov.shape) ** 0.5)

    def _step_others(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        if not parameters:
            return
        states = [self.state[parameter] for parameter in parameters]
        for parameter, state in zip(parameters, states, strict=True):
            if not state:
                state.update(
                    step=torch.tensor(0.0),
                    exp_avg=torch.zeros_like(parameter),
                    exp_avg_sq=torch.zeros_like(parameter),
                )
        beta1, beta2 = group['betas']
        adamw(
            parameters,
            [torch.as_tensor(parameter.grad) for parameter in parameters],
            [state['exp_avg'] for state in states],
            [state['exp_avg_sq'] for state in states],
            [],  # the maxima that amsgrad keeps
            [state['step'] for state in states],
            foreach=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group['lr'],
            weight_decay=group['weight_decay'],
            eps=group['eps'],
            maximize=False,
        )

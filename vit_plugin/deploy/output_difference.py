"""How far the outputs of an exported file are from those of its model."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError

from .deployed_module import Deployed, Outputs, largest
from .onnx_file import Run
from .traced_graph import example_inputs, sizes_to_try

# A float32 graph must equal the model. For other dtypes, the user decides which difference is
# acceptable.
FLOAT32_TOLERANCE = 1e-4
# For is_from_a_tie: relative noise on pixels, as large as float32's rounding after several sums,
# and the number of noisy copies. About every third copy decides a tie the other way.
ROUNDING = 1e-6
ROUNDED_COPIES = 8
# Batch sizes to compare for a file that takes any number of images.
COMPARED_BATCH_SIZES = (1, 2, 5)


def checking_finite(run: Run) -> Run:
    """Wrap a function that runs a file, and check that its outputs are finite.

    Raises:
        ConfigError: if they are not, which may happen in float16 with its small range.
    """

    def checked(*tensors: Tensor) -> Outputs:
        outputs = run(*tensors)
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            if not output.isfinite().all():
                raise ConfigError(
                    'The file has outputs that are infinite or NaN, and nothing was written; '
                    'export in float32.'
                )
        return outputs

    return checked


def largest_difference(
    model: Deployed, run: Run, size: tuple[int, int] | None, batch: int | None = None
) -> float:
    """The largest difference of the outputs for batches of random images.

    See :meth:`Deployed.difference`. If scores of proposals tie, rounding decides which query starts
    from which proposal, and outputs differ without an error. So a difference is ignored if rounding
    errors of the images change the model's own outputs by more than a tenth of it.
    """
    differences = []
    counts = (batch,) if batch else COMPARED_BATCH_SIZES
    for count, side in product(counts, sizes_to_try(model, size)):
        tensors = example_inputs(
            model, 255 * torch.rand(count, model.model.backbone.in_channels, *side)
        )
        with torch.no_grad():
            wanted = model(*tensors)
            difference = model.difference(run(*tensors), wanted)
            if difference > FLOAT32_TOLERANCE and is_from_a_tie(model, tensors, wanted, difference):
                difference = 0.0
        differences.append(difference)
    return largest(differences)


def is_from_a_tie(
    model: Deployed, tensors: Sequence[Tensor], wanted: Outputs, difference: float
) -> bool:
    """Whether rounding errors of the images change the outputs by over a tenth of a difference."""
    images, *others = tensors
    rounded = (
        model(images * (1 + ROUNDING * torch.randn_like(images)), *others)
        for _ in range(ROUNDED_COPIES)
    )
    return any(10 * model.difference(outputs, wanted) > difference for outputs in rounded)

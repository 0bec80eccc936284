"""Pictures of what a model sees, in the logs of a run."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.visualization.vis_backend import LocalVisBackend, MLflowVisBackend

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.engine.sharding import is_sharded, without_ddp
from vit_plugin.errors import ConfigError
from vit_plugin.inference.prepared_image import PreparedImage
from vit_plugin.registry import HOOKS

from .pictures.figure_files import as_pixels
from .pictures.pictures import ACROSS_IMAGES, PER_IMAGE


@HOOKS.register_module()
class PicturesHook(Hook):
    """Draws what the model sees in validation samples, as images in the logs of ``vis_backends``.

    ``LocalVisBackend`` gets none: it would only write files, and ``vit-plugin visualize`` can draw
    these from a checkpoint.

    Args:
        pictures: some of ``'attention'``, ``'rollout'``, ``'features'`` and ``'cam'`` (class
            activation), drawn for each sample; ``'distance'`` (attention distance), drawn once over
            all samples; ``'posembed'`` (similarity of positions), drawn from the weights.
        samples: indices in the validation data set. None: the first three, or all if it has fewer.
        interval: draw at every ``interval``-th validation, beginning with the first.

    Raises:
        ConfigError: if a picture is unknown, or if there are no samples to draw; after a
            validation, if the model is sharded or there is no such sample; when it draws, if the
            model has no such picture.
    """

    priority = 'ABOVE_NORMAL'  # before the EMAHook restores the model's own weights

    def __init__(
        self,
        pictures: Sequence[str] = ('features',),
        samples: Sequence[int] | None = None,
        interval: PositiveInt = 1,
    ) -> None:
        unknown = [name for name in pictures if name not in (*PER_IMAGE, *ACROSS_IMAGES)]
        if unknown:
            raise ConfigError(
                f'PicturesHook: there is no picture {unknown[0]!r}; give some of '
                f'{", ".join([*PER_IMAGE, *ACROSS_IMAGES])}.'
            )
        if samples is not None and not len(samples) and {*pictures} - {'posembed'}:
            raise ConfigError(
                'PicturesHook: samples=[] leaves nothing to draw; give some, as samples=[0], or '
                'leave it out.'
            )
        self.pictures, self.samples, self.interval = tuple(pictures), samples, interval
        self._validations = 0

    def after_val_epoch(self, runner: Runner, metrics: dict[str, Any] | None = None) -> None:
        model, due = without_ddp(runner.model), self._validations % self.interval == 0
        self._validations += 1
        # Both errors are raised on all ranks: if one raised alone, the others would wait for it.
        if is_sharded(model):
            raise ConfigError(
                'PicturesHook: a sharded model cannot be drawn during a run; leave the hook out, '
                'and draw its checkpoint with vit-plugin visualize.'
            )
        if not due:
            return
        dataset = runner.val_dataloader.dataset
        samples = range(min(3, len(dataset))) if self.samples is None else self.samples
        for index in samples:
            if not -len(dataset) <= index < len(dataset):
                raise ConfigError(
                    f'PicturesHook: there is no sample {index}, since the validation set has '
                    f'{len(dataset)} samples; give others, as samples=[0].'
                )
        if not is_main_process():
            return
        prepared = {
            index: PreparedImage.from_batch(model, pseudo_collate([dataset[index]]))
            for index in samples
        }
        for name in self.pictures:
            if name in ACROSS_IMAGES:
                log_image(runner, name, ACROSS_IMAGES[name](model, prepared.values()))
            else:
                for index, image in prepared.items():
                    log_image(runner, f'{name}_{index}', PER_IMAGE[name](model, image))


def log_image(runner: Runner, name: str, figure: Figure) -> None:
    """Add a figure, at this iteration, to all logs of ``vis_backends`` but ``LocalVisBackend``."""
    backends = getattr(runner.visualizer, '_vis_backends', {}).values()
    backends = [backend for backend in backends if not isinstance(backend, LocalVisBackend)]
    pixels = as_pixels(figure) if backends else None
    for backend in backends:
        # MLflow expects a file name.
        log_name = f'{name}_{runner.iter}.png' if isinstance(backend, MLflowVisBackend) else name
        backend.add_image(log_name, pixels, runner.iter)

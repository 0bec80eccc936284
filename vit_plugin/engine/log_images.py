"""Figures as images in the logs of a run."""

from matplotlib.figure import Figure
from mmengine.runner import Runner
from mmengine.visualization.vis_backend import LocalVisBackend, MLflowVisBackend

from vit_plugin.visualization.style import as_pixels


def log_image(runner: Runner, name: str, figure: Figure) -> None:
    """Add a figure to every log of the config's ``vis_backends`` but the local folder, at the present iteration."""
    backends = getattr(runner.visualizer, '_vis_backends', {}).values()
    backends = [backend for backend in backends if not isinstance(backend, LocalVisBackend)]
    pixels = as_pixels(figure) if backends else None
    for backend in backends:
        # MLflow wants the name of a file.
        full = f'{name}_{runner.iter}.png' if isinstance(backend, MLflowVisBackend) else name
        backend.add_image(full, pixels, runner.iter)

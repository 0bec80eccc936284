"""Replacements of MMPretrain's hook and visualizer of predictions. They draw nothing."""

from typing import Any

from mmengine.hooks import Hook
from mmengine.visualization import Visualizer

from vit_plugin.errors import EXTRAS, ConfigError


class UniversalVisualizer(Visualizer):
    """MMEngine's visualizer, which only writes logs."""


class VisualizationHook(Hook):
    """A hook that does nothing.

    Raises:
        ConfigError: if it is enabled.
    """

    def __init__(self, enable: bool = False, **kwargs: Any) -> None:
        if enable:
            raise ConfigError(
                'VisualizationHook: only MMPretrain draws the predictions of a test; let '
                f'vit-plugin infer draw them, or pip install {EXTRAS["mmpretrain"]}.'
            )

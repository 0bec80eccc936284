"""Initialize a module from a checkpoint with our reader instead of MMEngine's.

MMEngine only loads tensors with the module's own names and shapes. Our reader also converts other
formats, and raises if anything does not fit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmengine.logging import print_log
from mmengine.model import BaseModule
from mmengine.model.weight_init import PretrainedInit

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import InitConfig, Pair
from vit_plugin.errors import ConfigError
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.published_run import as_run
from vit_plugin.weights.report import Report

# Keys of an entry of type='Pretrained': MMEngine's, and arguments of `load`.
PRETRAINED_KEYS = {'type', 'checkpoint', 'prefix', 'map_location', 'skip', 'source_grid'}


class LoadableModule(BaseModule):
    """Base class of a module whose method ``load`` reads the checkpoint in its ``init_cfg``.

    Args:
        init_cfg: MMEngine's initialization config. In addition to MMEngine's keys, its entry
            ``type='Pretrained'`` may have ``skip`` and ``source_grid``. ``checkpoint=True`` means
            timm's weights that ``arch`` names.
        arch: the arch of the backbone.

    Raises:
        ConfigError: for ``checkpoint=True`` if ``arch`` is not a timm name.
    """

    init_cfg: Any

    def __init__(self, init_cfg: InitConfig = None, arch: Any = None) -> None:
        super().__init__(_with_arch_name(init_cfg, arch))

    def load(
        self, source: Any, skip: Sequence[str] = (), source_grid: tuple[int, int] | None = None
    ) -> Report:
        """See :func:`~vit_plugin.models.load_weights`."""
        raise NotImplementedError

    def init_weights(self) -> None:
        """MMEngine's initialization, with :meth:`load` for a checkpoint in ``init_cfg``.

        Raises:
            ConfigError: if an entry of ``type='Pretrained'`` has an unknown key, no path or
                address, or weights that do not fit.
        """
        # A second call only warns, as in MMEngine, and must not load again.
        init_cfg, is_first = self.init_cfg, not self.is_init
        cfgs = init_cfg if isinstance(init_cfg, (list, tuple)) else [init_cfg] if init_cfg else []
        pretrained = [cfg for cfg in cfgs if cfg.get('type') in ('Pretrained', PretrainedInit)]
        self.init_cfg = [cfg for cfg in cfgs if cfg not in pretrained]
        try:
            super().init_weights()
        finally:
            self.init_cfg = init_cfg
        if is_first:
            for cfg in pretrained:
                report = self.load_entry(cfg)
                print_log(f'Loaded {cfg["checkpoint"]}\n{report}', 'current')

    def load_entry(self, cfg: Mapping[str, Any]) -> Report:
        """Load the checkpoint of an entry ``type='Pretrained'`` of ``init_cfg``.

        Raises:
            ConfigError: see :meth:`init_weights`.
        """
        source, prefix = cfg.get('checkpoint'), cfg.get('prefix')
        skip, source_grid = cfg.get('skip') or (), cfg.get('source_grid')
        if (
            cfg.keys() - PRETRAINED_KEYS
            or not isinstance(source, (str, Path))
            or not isinstance(prefix, str | None)
            or not fits(Sequence[str], skip)
            or not fits(Pair | None, source_grid)
        ):
            raise ConfigError(
                f'init_cfg={cfg} must have checkpoint, a path or address, and may have '
                'prefix, skip and source_grid, where skip is a list of patterns, and source_grid '
                'is (rows, columns).'
            )
        if prefix:
            prefix = prefix.rstrip('.') + '.'
            # Gives published detectors and segmentors our names, which the prefix is one of. An
            # image encoder keeps its names, since `load` converts them.
            weights = as_run(open_checkpoint(source), images=False).weights
            source = {
                key.removeprefix(prefix): weights[key] for key in weights if key.startswith(prefix)
            }
            if not source:
                raise ConfigError(
                    f'init_cfg={cfg}: no weight in the checkpoint begins with {prefix!r}; correct '
                    'prefix, or leave it out.'
                )
        return self.load(source, skip, source_grid)


def _with_arch_name(init_cfg: Any, arch: Any) -> Any:
    """``init_cfg`` with the name in ``arch`` in place of ``checkpoint=True``."""
    if isinstance(init_cfg, (list, tuple)):
        return [_with_arch_name(cfg, arch) for cfg in init_cfg]
    if not init_cfg or init_cfg.get('checkpoint') is not True:
        return init_cfg
    if not str(arch).startswith('timm://'):
        raise ConfigError(
            f'init_cfg: checkpoint=True takes the weights that arch=timm://... names, but this is '
            f'arch={arch!r}; give checkpoint a path or an address.'
        )
    return dict(init_cfg, checkpoint=arch)

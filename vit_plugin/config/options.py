"""Find names in ``--cfg-options`` that nothing would read."""

from collections.abc import Mapping
from typing import Any

from mmengine.config import Config

from vit_plugin.arguments import Signature
from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import closest, suggestion

# Settings beyond the runner's arguments that `cfg.get` reads: in our runner and tools, in MMEngine
# and in the frameworks. tests/config/test_options.py compares them with the sources.
OUR_SETTINGS = {
    'begin_from',
    'data_license',
    'find_unused_parameters',
    'lora',
    'optimize',
    'resume_changed',
    'runner_type',
    'schedule_length',
    'sharding',
    'tta_model',
    'tta_pipeline',
    'unreadable',
    'verbose',
}
FRAMEWORK_SETTINGS = {
    'activation_checkpointing',
    'compile',
    'custom_imports',
    'efficient_conv_bn_eval',
    'env_cfg',
    'gpu_ids',
    'launcher',
    'model_wrapper_cfg',
    'strategy',
    'sync_bn',
}


def check_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Reject names in ``--cfg-options`` that nothing would read.

    At the top, a name must be one that the runner or a tool reads. :mod:`.sections` checks the
    names within sections. Elsewhere, a new name is rejected if it is similar to an existing one. A
    preprocessor inside the model is rejected if the config also has one next to the model: MMEngine
    would drop it.

    Raises:
        ConfigError: for such a name, with the most similar known name; or if an option does not
            name an item of a list, or has a plain value as its section.
    """
    settings = cfg.to_dict()
    for option in options:
        section: Any = settings
        names = option.split('.')
        for i, name in enumerate(names):
            path = '.'.join(names[:i])
            if isinstance(section, (list, tuple)):
                if not section:
                    raise ConfigError(f'--cfg-options {option}: {path} is a list without items.')
                if not name.isdecimal() or int(name) >= len(section):
                    raise ConfigError(
                        f'--cfg-options {option}: {path} is a list, whose items are named by their '
                        f'indices from 0 to {len(section) - 1}.'
                    )
                section = section[int(name)]
            elif isinstance(section, Mapping) or section is None:
                if not section or name not in section:
                    _check_new(option, path, name, section or {})
                section = (section or {}).get(name, {})
            else:
                raise ConfigError(f'--cfg-options {option}: {path}={section!r} has no settings.')
        if option.startswith('model.data_preprocessor') and 'data_preprocessor' in settings:
            raise ConfigError(
                f'--cfg-options {option}: data_preprocessor is next to the model in this config; '
                "leave out the 'model.'"
            )


def _check_new(option: str, path: str, name: str, siblings: Mapping) -> None:
    """Check a name that the config does not have yet, at a path with these ``siblings``."""
    # Imported here, since commands that do not train do not need the training code.
    from mmengine.runner import Runner

    from .sections import CONFIG_SECTIONS, NESTED_SECTIONS

    if not path:
        known = OUR_SETTINGS | FRAMEWORK_SETTINGS | Signature.of(Runner).fields.keys()
        is_wrong = name not in known
    else:
        known = set(siblings)
        is_checked_later = (
            'type' in siblings
            or path.rpartition('.')[2] in CONFIG_SECTIONS.keys() | NESTED_SECTIONS.keys()
        )
        # A new setting may be right, but one that is almost an existing name is a typo.
        is_wrong = not is_checked_later and bool(closest(name, known, cutoff=0.8))
    if is_wrong:
        raise ConfigError(
            f'--cfg-options {option}: {path or "a config"} has no setting {name!r}; '
            f'{suggestion(name, sorted(known))}'
        )

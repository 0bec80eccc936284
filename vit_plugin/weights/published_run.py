"""Present third-party checkpoints like those of a run, so that every command takes them.

Projects know their models, see :attr:`vit_plugin.project.Project.published`. Their readers build
the config of the same model here, which is added to the weights as MMEngine would have saved it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any

from mmengine.logging import print_log

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import naming, rejecting
from vit_plugin.project import declared_rows

from .opening import Checkpoint
from .reading.lazy import Lazy, Weights

# The beginnings of names in timm -> those of addresses here.
TIMM_ADDRESSES = {'local-dir:': '', 'local_dir:': '', 'hf-hub:': 'hf://', 'hf_hub:': 'hf://'}


def address_of(name: str) -> str:
    """The address of a published model's weights, by its name (its license is logged).

    Any other text, such as a path, is returned unchanged.
    """
    for start, ours in TIMM_ADDRESSES.items():
        if name.startswith(start):
            return ours + name.removeprefix(start)
    license, _, address = declared_rows('offered').get(name, ('', 0, name))
    if license:
        print_log(f'{name}: {address}, license {license}', 'current')
    return address


IMAGE_MODEL = 'vit_plugin.weights.published_image_model:image_model'


def as_run(checkpoint: Checkpoint, images: bool = True) -> Checkpoint:
    """Present a published model as a checkpoint of this package. Others are returned unchanged.

    Args:
        checkpoint: the open checkpoint.
        images: whether to include image encoders and classifiers. Their weights can be loaded
            without this, since they have a known format.

    Raises:
        ConfigError: if it is a published model of a kind that cannot be built here, if its config
            has an entry that no reader knows, or if its file is damaged.
    """
    if checkpoint.meta.get('cfg') or not checkpoint.weights:
        return checkpoint
    from .published import Published

    published = Published(checkpoint)
    readers = declared_rows('published') | ({'image model': IMAGE_MODEL} if images else {})
    for name, reader in readers.items():
        with (
            naming(f'{checkpoint.source} ({name})'),
            rejecting(
                'its arrays or settings do not go together',
                'the file is damaged, or of another model',
                (ArithmeticError, LookupError, TypeError, ValueError),
            ),
        ):
            run = resolve_name(reader)(published)
            if run is not None:
                for config in published.read_configs:
                    config.check()
        if run is not None:
            settings, classes, *renamed = run  # some readers also return the weights by our names
            ours = renamed[0] if renamed else published.ours
            used = Lazy(
                [key for key in ours if not key.startswith(tuple(published.unused))],
                ours.__getitem__,
            )
            return replace(checkpoint, content=_content(used, settings, classes))
    return checkpoint


def _content(ours: Weights, settings: Mapping[str, Any], classes: Sequence[str]) -> Section:
    """The content that MMEngine would have saved: config, classes, and the weights by our names."""
    modules = settings['model']
    is_prefixed = any(name.startswith('backbone.') for name in ours)
    # Names of the backbone get its prefix. Those of another module, such as the head, have theirs.
    names = {
        name if is_prefixed or name.partition('.')[0] in modules else f'backbone.{name}': name
        for name in ours
    }
    return dict(
        meta=dict(
            cfg='\n'.join(f'{name} = {value!r}' for name, value in settings.items()),
            dataset_meta=dict(classes=tuple(classes)),
        ),
        state_dict=Lazy(names, lambda name: ours[names[name]]),
    )

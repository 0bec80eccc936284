"""The names that something would understand, and the nearest to a wrong one."""

import inspect
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from mmengine.registry import Registry

from vit_plugin.arguments import Signature
from vit_plugin.registry import SCOPE


def registered(registry: Registry | None) -> set[str]:
    """The names in a registry, in its parents, and with their scope in its children."""
    names: set[str] = set()
    while registry is not None:
        names |= set(registry.module_dict)
        for scope, child in registry.children.items():
            if scope == SCOPE:
                child.import_from_location()
            names |= {
                f'{scope}.{name}' for name in (*child.module_dict, *getattr(child, 'later', ()))
            }
        registry = registry.parent
    return names


def parameters(kind: Any) -> set[str]:
    """The arguments of a class, including those that it passes to its parents, or of a function."""
    if inspect.isclass(kind):
        return set(Signature.of_class(kind).fields)
    return set(inspect.signature(kind).parameters) - {'self'} if kind else set()


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a sentence, with its full stop: names similar to a wrong one, ignoring scopes."""
    names = sorted(names)
    unscoped = {one: one.rpartition('.')[2] for one in names}
    near = get_close_matches(name.rpartition('.')[2], list(unscoped.values()), 3, 0.7)
    if near:
        return f'; did you mean {" or ".join(one for one in names if unscoped[one] in near)}?'
    return f'; there are {", ".join(names)}.' if 0 < len(names) <= 16 else '.'

"""Repair framework modules that were imported while mmcv had no ops.

They import ops within ``try``, and replace a missing op by a function that raises an error, by
None, or by another base class. Such a ``try`` statement is run again, and the placeholder is
replaced under its name in every module of the frameworks.
"""

import ast
import sys
import warnings
from abc import update_abstractmethods
from collections.abc import Iterator, Sequence
from contextlib import suppress
from inspect import getsource
from types import ModuleType
from typing import Any

FRAMEWORKS = ('mmcv', 'mmdet', 'mmpretrain', 'mmseg')
# Packages with ops, and those that cannot be imported without them. Names of modules are compared
# with a dot at their end, so that `mmdet.` does not match a package such as `mmdet_extra`.
NEED_OPS = ('mmcv.ops.', 'mmcv.cnn.bricks.transformer.', 'mmdet.')
MISSING = object()  # stands for a name that a module lacks, since some placeholders are None


def retry() -> None:
    """Run the failed imports of ops again."""
    for module in _imported():
        for statement in _attempts(module):
            with suppress(ImportError), warnings.catch_warnings():
                warnings.simplefilter('ignore')
                if _has_failed(statement, module):
                    _run_again(statement, module)


def _imported() -> list[ModuleType]:
    """The imported modules of the frameworks, with dependencies first."""
    modules = [*sys.modules.items()]
    return [
        module
        for framework in FRAMEWORKS
        for name, module in modules
        if module and name.partition('.')[0] == framework
    ]


def _attempts(module: ModuleType) -> Iterator[ast.Try]:
    """The statements of a module that try to import what needs ops."""
    try:
        source = getsource(module)
    except (OSError, TypeError):  # a package without a file or without source
        return
    if 'except' in source:
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Try) and any(map(_needs_ops, statement.body)):
                yield statement


def _needs_ops(statement: ast.stmt) -> bool:
    """True for ``from mmcv.ops import ...`` and the like."""
    return (
        isinstance(statement, ast.ImportFrom)
        and not statement.level
        and f'{statement.module}.'.startswith(NEED_OPS)
    )


def _execute(statements: Sequence[ast.stmt], names: dict[str, Any], module: ModuleType) -> None:
    """Execute statements of a module in a namespace."""
    exec(compile(ast.Module([*statements], []), str(module.__file__), 'exec'), names)


def _has_failed(attempt: ast.Try, module: ModuleType) -> bool:
    """Whether the module's names differ from what the statement would import.

    Raises:
        ImportError: if the ops still cannot be imported.
    """
    names = dict(__name__=module.__name__, __package__=module.__package__)
    not_imported = {*names, '__builtins__'}
    imports = [node for node in attempt.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    _execute(imports, names, module)
    present = vars(module)
    return any(
        present.get(name, MISSING) is not names[name] for name in names.keys() - not_imported
    )


def _run_again(attempt: ast.Try, module: ModuleType) -> None:
    """Run the body of the statement in its module, and replace the placeholders it had made."""
    names = vars(module)
    before = dict(names)
    _execute(attempt.body, names, module)
    for name, value in names.items():
        placeholder = before.get(name, MISSING)
        if placeholder is not value and placeholder is not MISSING:
            _replace(name, placeholder, value, module)
            _replace_base(module, placeholder, value)


def _replace(name: str, placeholder: Any, value: Any, module: ModuleType) -> None:
    """Replace the placeholder in modules that have imported it from this one."""
    for other in _imported():
        # A name that is None may be another module's own, except in the packages of this module.
        is_certain = placeholder is not None or module.__name__.startswith(f'{other.__name__}.')
        if is_certain and vars(other).get(name, MISSING) is placeholder:
            setattr(other, name, value)


def _replace_base(module: ModuleType, placeholder: Any, value: Any) -> None:
    """Replace the placeholder as a base of a module's classes."""
    for cls in [*vars(module).values()]:
        if (
            isinstance(cls, type)
            and cls.__module__ == module.__name__
            and placeholder in cls.__bases__
        ):
            cls.__bases__ = tuple(value if base is placeholder else base for base in cls.__bases__)
            update_abstractmethods(cls)

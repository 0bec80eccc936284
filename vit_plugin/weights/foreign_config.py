"""A config that another library wrote. Each of its entries is used, changes nothing, or is named.

A reader that picks the entries it knows would build another model than the one described, without
a word. So :class:`ForeignConfig` records what was read, and :meth:`ForeignConfig.check` rejects the
rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import Repr
from typing import Any

from vit_plugin.arguments import fits
from vit_plugin.errors import ConfigError

from .report import shortened_list

SHORT = Repr()  # shortens values in messages
SHORT.maxstring = SHORT.maxother = 60  # characters
SHORT.maxlist = SHORT.maxtuple = 12


@dataclass(frozen=True, kw_only=True)
class ConfigKind:
    """The fields of a class of configs in another library.

    Attributes:
        defaults: the fields that change what a model predicts, and their values in that library
            where a config lacks them.
        unused: the other fields, as words, by the reason why they change no prediction.
        aliases: second names of fields, which the library takes for the first ones.
    """

    defaults: Mapping[str, Any]
    unused: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def changing_nothing(self) -> set[str]:
        """The names in ``unused``."""
        return {name for names in self.unused.values() for name in names.split()}


class ForeignConfig:
    """The entries of a config that another library wrote, which are data of an unknown person.

    Args:
        content: the entries.
        kind: the fields that it may have.
        subject: what has the entries, as the beginning of a message.
        prefix: what precedes the names of fields, in a config within another.

    Raises:
        ConfigError: if a field has two values, by its name and by an alias.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        kind: ConfigKind,
        subject: str = 'its config.json',
        prefix: str = '',
    ) -> None:
        self.content, self.kind, self.subject, self.prefix = dict(content), kind, subject, prefix
        self._read: set[str] = set()
        self._parts: list[ForeignConfig] = []
        for alias, name in kind.aliases.items():
            if alias in self.content:
                value = self.content.pop(alias)
                if self.content.setdefault(name, value) != value:
                    raise self._error(
                        f'{self._shown(name)} and {alias}={SHORT.repr(value)}, which are the same '
                        'field; leave one out'
                    )

    def may_have(self, name: str) -> bool:
        """True for a field of this kind, whether or not the config has it."""
        return name in self.kind.defaults

    def gives(self, name: str) -> bool:
        """True if the config itself has the field, which else has its default."""
        return name in self.content

    def __getitem__(self, name: str) -> Any:
        """The value of a field, of the type of its default. See :meth:`get`."""
        return self.get(name, type(self.kind.defaults[name]))

    def get(self, name: str, annotation: Any) -> Any:
        """The value of a field, or the library's default.

        Args:
            name: of the field.
            annotation: the type of its value.

        Raises:
            ConfigError: if it has a value of another type.
        """
        self._read.add(name)
        value = self.content.get(name, default := self.kind.defaults[name])
        annotation = Sequence[Any] if annotation in (list, tuple) else annotation
        if not fits(annotation, value):
            raise self._error(
                f'{self._shown(name)}, where a value such as {default!r} is expected; mend it'
            )
        return value

    def part(
        self, name: str, kinds: Mapping[str, ConfigKind], absent: Mapping[str, Any]
    ) -> 'ForeignConfig':
        """The config in a field.

        Args:
            name: of the field.
            kinds: the kinds that it may have, by their ``model_type``.
            absent: the library's own one, where there is none.

        Raises:
            ConfigError: if it is no dict, or of another kind.
        """
        self._read.add(name)
        content = self.content.get(name)
        content = absent if content is None else content
        if not isinstance(content, Mapping):
            raise self._error(f'{self._shown(name)}, where a config is expected; mend it')
        model_type = content.get('model_type', next(iter(kinds)))
        if not isinstance(model_type, str) or model_type not in kinds:
            raise self._error(
                f'{self.prefix}{name}.model_type={SHORT.repr(model_type)}, and models here are '
                f'built with {" or ".join(kinds)}; give another model'
            )
        part = ForeignConfig(content, kinds[model_type], self.subject, f'{self.prefix}{name}.')
        part.leave('model_type')
        self._parts.append(part)
        return part

    def only(self, name: str, *values: Any) -> None:
        """Raise a ``ConfigError`` if a field has none of these values, which are computed here."""
        self._read.add(name)
        value = self.content.get(name, self.kind.defaults[name])
        if not any(_same(value, one) for one in values):
            raise self._error(
                f'{self._shown(name)}, and models here compute '
                f'{" or ".join(repr(one) for one in values)}; give another model'
            )

    def agree(self, **shown: Any) -> None:
        """Raise a ``ConfigError`` if fields have other values than those that the weights show.

        Fields that this kind does not have are passed over.
        """
        for name, value in shown.items():
            if not self.may_have(name):
                continue
            self._read.add(name)
            if not _same(self.content.get(name, value), value):
                raise self._error(
                    f'{self._shown(name)}, but its weights show {value!r}; give the complete folder'
                )

    def leave(self, *names: str) -> None:
        """Pass over fields that change nothing in the model that the others describe."""
        self._read |= {*names}

    def refuse(self, *names: str, why: str = '') -> ConfigError:
        """The error for fields whose values are not computed here, at least not together."""
        listed = ' and '.join(self._shown(name) for name in names)
        return self._error(f'{listed}, {why or "which no model here computes"}; give another model')

    def check(self) -> None:
        """Raise a ``ConfigError`` that names what was not read and may change the predictions."""
        left = [*self._left()]
        if left:
            listed, remedies = zip(*left, strict=True)
            raise self._error(
                f'{shortened_list(listed)}, which no model here computes; give a model '
                f'{shortened_list(remedies)}'
            )

    def _left(self) -> Iterator[tuple[str, str]]:
        """Each entry that was not read, and which model would be, in words."""
        known = self._read | self.kind.changing_nothing
        for name, value in self.content.items():
            if name in known or (
                name in self.kind.defaults and _same(value, self.kind.defaults[name])
            ):
                continue
            usual = (
                f'with {name}={self.kind.defaults[name]!r}'
                if self.may_have(name)
                else f'without {name}'
            )
            yield self._shown(name), usual
        for part in self._parts:
            yield from part._left()

    def _shown(self, name: str) -> str:
        value = self.content.get(name, self.kind.defaults.get(name))
        return f'{self.prefix}{name}={SHORT.repr(value)}'

    def _error(self, words: str) -> ConfigError:
        return ConfigError(f'{self.subject} has {words}')


def _same(value: Any, other: Any) -> bool:
    """Equality of values as JSON has them: a tuple is a list, and True is no number."""
    if isinstance(value, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(value) == len(other) and all(map(_same, value, other))
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)

"""Read a config of another library, without ignoring any entry silently.

A reader that picks the entries it knows might build another model than the one described. So
:class:`ForeignConfig` records which entries were read: by ``config['name']`` or ``get``, by
``require`` (only some values are supported), by ``check_agreement`` (the weights show the value
anyway) or by ``ignore``. :meth:`ForeignConfig.check` then rejects the rest, unless they have no
effect: because they are at their default, or unused by the config's :class:`ConfigKind`.
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
SHORT.maxlist = SHORT.maxtuple = 12  # items


@dataclass(frozen=True, kw_only=True)
class ConfigKind:
    """The fields of a config class of another library.

    Attributes:
        defaults: the fields that affect predictions, with that library's defaults.
        unused: the names of all other fields, separated by spaces, by the reason why they do not
            affect predictions.
        aliases: alternative names of fields -> the names in ``defaults``.
    """

    defaults: Mapping[str, Any]
    unused: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def unused_names(self) -> set[str]:
        """The names in ``unused``."""
        return {name for names in self.unused.values() for name in names.split()}


class ForeignConfig:
    """The config of another library, which is untrusted data.

    Args:
        content: the entries.
        kind: its allowed fields.
        subject: what has the entries, as the first words of a message.
        prefix: prefix of field names in messages, for a nested config.

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
                        f'{self._text(name)} and {alias}={SHORT.repr(value)}, which are the same '
                        'field; leave one out'
                    )

    def may_have(self, name: str) -> bool:
        """True for a field of this kind, even if the config lacks it."""
        return name in self.kind.defaults

    def sets(self, name: str) -> bool:
        """True if the config sets the field, instead of leaving its default."""
        return name in self.content

    def __getitem__(self, name: str) -> Any:
        """The value of a field, of the type of its default. See :meth:`get`."""
        return self.get(name, type(self.kind.defaults[name]))

    def get(self, name: str, annotation: Any) -> Any:
        """The value of a field, or the library's default.

        Args:
            name: the name of the field.
            annotation: the type of its value.

        Raises:
            ConfigError: if it has a value of another type.
        """
        self._read.add(name)
        value = self.content.get(name, default := self.kind.defaults[name])
        annotation = Sequence[Any] if annotation in (list, tuple) else annotation
        if not fits(annotation, value):
            raise self._error(
                f'{self._text(name)}, where a value such as {default!r} is expected; correct it'
            )
        return value

    def part(
        self, name: str, kinds: Mapping[str, ConfigKind], absent: Mapping[str, Any]
    ) -> 'ForeignConfig':
        """The nested config in a field.

        Args:
            name: the name of the field.
            kinds: the allowed kinds, by their ``model_type``. The first is the default.
            absent: the library's default, if the field is missing or None.

        Raises:
            ConfigError: if it is not a dict, or of a kind that is not allowed.
        """
        self._read.add(name)
        content = self.content.get(name)
        content = absent if content is None else content
        if not isinstance(content, Mapping):
            raise self._error(f'{self._text(name)}, where a config is expected; correct it')
        model_type = content.get('model_type', next(iter(kinds)))
        if not isinstance(model_type, str) or model_type not in kinds:
            raise self._error(
                f'{self.prefix}{name}.model_type={SHORT.repr(model_type)}, and models here are '
                f'built with {" or ".join(kinds)}; give another model'
            )
        part = ForeignConfig(content, kinds[model_type], self.subject, f'{self.prefix}{name}.')
        part.ignore('model_type')
        self._parts.append(part)
        return part

    def require(self, name: str, *values: Any) -> None:
        """Raise a ``ConfigError`` unless a field has one of these values, which are supported."""
        self._read.add(name)
        value = self.content.get(name, self.kind.defaults[name])
        if not any(_same(value, supported) for supported in values):
            raise self._error(
                f'{self._text(name)}, and models here compute '
                f'{" or ".join(map(repr, values))}; give another model'
            )

    def check_agreement(self, **shown_by_weights: Any) -> None:
        """Raise a ``ConfigError`` if fields contradict the values that the weights show.

        Fields that this kind does not have are skipped.
        """
        for name, value in shown_by_weights.items():
            if not self.may_have(name):
                continue
            self._read.add(name)
            if not _same(self.content.get(name, value), value):
                raise self._error(
                    f'{self._text(name)}, but its weights show {value!r}; give the complete folder'
                )

    def ignore(self, *names: str) -> None:
        """Accept fields without reading them, since they have no effect on this model."""
        self._read |= {*names}

    def unsupported(self, *names: str, why: str = '') -> ConfigError:
        """The error for fields with values that are not supported, at least not together."""
        listed = ' and '.join(self._text(name) for name in names)
        return self._error(f'{listed}, {why or "which no model here computes"}; give another model')

    def check(self) -> None:
        """Raise a ``ConfigError`` for unread entries that may affect predictions."""
        unread = [*self._unread_entries()]
        if unread:
            listed, remedies = zip(*unread, strict=True)
            raise self._error(
                f'{shortened_list(listed)}, which no model here computes; give a model '
                f'{shortened_list(remedies)}'
            )

    def _unread_entries(self) -> Iterator[tuple[str, str]]:
        """Each entry that was not read and is not at its default, and what would be supported."""
        accepted = self._read | self.kind.unused_names
        for name, value in self.content.items():
            if name in accepted or (
                name in self.kind.defaults and _same(value, self.kind.defaults[name])
            ):
                continue
            remedy = (
                f'with {name}={self.kind.defaults[name]!r}'
                if self.may_have(name)
                else f'without {name}'
            )
            yield self._text(name), remedy
        for part in self._parts:
            yield from part._unread_entries()

    def _text(self, name: str) -> str:
        """A field with its value, as text."""
        value = self.content.get(name, self.kind.defaults.get(name))
        return f'{self.prefix}{name}={SHORT.repr(value)}'

    def _error(self, words: str) -> ConfigError:
        return ConfigError(f'{self.subject} has {words}')


def _same(value: Any, other: Any) -> bool:
    """Equality of JSON values: a tuple equals a list, and True is not 1."""
    if isinstance(value, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(value) == len(other) and all(map(_same, value, other))
    return isinstance(value, bool) == isinstance(other, bool) and bool(value == other)

"""The codes of classes, which the key ``classes`` of a layout maps to class names.

A code is what stands for a class in the labels: a number, a name, a color, or one of a range of
numbers.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from anyfolder.errors import InputError
from anyfolder.readers.class_names import class_name
from anyfolder.readers.mask_names import FIRST_COLOR
from anyfolder.readers.tables import WHOLE_NUMBER

from .nearest import did_you_mean

# This code stands for all codes that are not listed. If it is also their name, each of them is the
# name of its own class.
OTHERS = '*'
RANGE = re.compile(rf'({WHOLE_NUMBER.pattern})-({WHOLE_NUMBER.pattern})')
HEX = re.compile(r'#([0-9a-fA-F]{6})')
RGB = re.compile(r'(\d{1,3})[ ,]+(\d{1,3})[ ,]+(\d{1,3})')


def color_of(code: str) -> int | None:
    """The mask value of a color such as ``#ff0000`` or ``255 0 0``; None for other text.

    Colors of masks are numbers from :data:`FIRST_COLOR` on, and a gray is its own value.
    """
    if found := HEX.fullmatch(code):
        red, green, blue = bytes.fromhex(found[1])
    elif (found := RGB.fullmatch(code)) and max(map(int, found.groups())) < 256:
        red, green, blue = map(int, found.groups())
    else:
        return None
    return red if red == green == blue else FIRST_COLOR + (red << 16) + (green << 8) + blue


def _range_of(code: str) -> range | None:
    """The numbers of a code such as ``1-5``; None for other text, and for ``2020-01``."""
    ends = RANGE.fullmatch(code)
    return (range(int(ends[1]), int(ends[2]) + 1) if ends else None) or None


@dataclass
class ClassCodes:
    """The class name of each code.

    The name None means that the objects of a code are ignored, and that its pixels and images have
    no class.

    Attributes:
        names: the name of each code.
        ranges: the name of each range of numbers.
        others: the name of all other codes. :data:`OTHERS`: each code is the name of its class.
            Empty: other codes are an error.
        file: the file that defines them, for messages.
        listed: the names of a list, in which each can also stand for itself; empty for a mapping.
    """

    names: dict[str, str | None] = field(default_factory=dict)
    ranges: list[tuple[range, str | None]] = field(default_factory=list)
    others: str | None = OTHERS
    file: str = ''
    listed: Sequence[str] = ()

    @classmethod
    def of_names(cls, names: Sequence[str], file: str) -> 'ClassCodes':
        """The codes of a list of names. A class can be stated by name or by its number from 0."""
        numbered = {str(number): class_name(name) for number, name in enumerate(names)}
        codes: dict[str, str | None] = {
            **numbered,
            **{name: class_name(name) for name in names},
        }
        return cls(codes, others='', file=file, listed=names)

    @classmethod
    def of_codes(cls, names: Mapping[str, str | None], file: str) -> 'ClassCodes':
        """The codes of a mapping, such as ``{'0': 'car', '1-5': 'tree', '*': None}``."""
        codes = cls(others='', file=file)
        for code, name in names.items():
            name = name if name in (None, OTHERS) else class_name(name)
            if code == OTHERS:
                codes.others = name
            elif numbers := _range_of(code):
                codes.ranges.append((numbers, name))
            else:
                codes.names[code] = name
        return codes

    def counted_from_0(self) -> 'ClassCodes':
        """These codes for labels that are numbers: in a list, they count the names from 0.

        Otherwise the name ``1`` in a list would be another code of its class.
        """
        if not self.listed:
            return self
        numbered = {str(number): class_name(name) for number, name in enumerate(self.listed)}
        others = {code: name for code, name in self.names.items() if not code.isdecimal()}
        return ClassCodes({**numbered, **others}, self.ranges, self.others, self.file)

    def merged_with(self, other: 'ClassCodes | None') -> 'ClassCodes':
        """Merge with other codes, which take precedence."""
        if other is None:
            return self
        names = {**self.names, **other.names}
        return ClassCodes(names, [*other.ranges, *self.ranges], other.others, self.file)

    @property
    def classes(self) -> list[str]:
        """The names in the order of their codes."""
        named = [*self.names.values(), *(name for _, name in self.ranges), self.others]
        return list(dict.fromkeys(name for name in named if name not in (None, '', OTHERS)))

    @property
    def by_color(self) -> bool:
        """Whether some codes are colors."""
        return any(color_of(code) is not None for code in self.names)

    def name_of(self, code: str) -> str | None:
        """The name that a code stands for; None if its objects are ignored.

        Raises:
            KeyError: for a code without a name.
        """
        if code in self.names:
            return self.names[code]
        number = re.sub(r'\.0+$', '', code)  # pandas writes 14 as 14.0
        if WHOLE_NUMBER.fullmatch(number):
            if (short := str(int(number))) in self.names:  # 00014 is 14
                return self.names[short]
            for numbers, name in self.ranges:
                if int(number) in numbers:
                    return name
        for numbers, name in self.ranges:
            if numbers == _range_of(code):  # a name such as 20-29, which is no number
                return name
        if self.others == '':
            raise KeyError(code)
        return class_name(code) if self.others == OTHERS else self.others

    def remedy(self, code: str) -> str:
        """The remedy for a code without a name, as the end of a message."""
        return f'name it in classes, or all others by {OTHERS!r}{did_you_mean(code, self.names)}'

    def of_values(self, values: Iterable[int]) -> dict[int, str | None]:
        """The name of each value of masks; 255 is unlabeled unless it has a name.

        Raises:
            InputError: for a value without a name.
        """
        colors = {color_of(code): name for code, name in self.names.items()}
        name_of_value: dict[int, str | None] = {}
        for value in values:
            try:
                name_of_value[value] = (
                    colors[value] if value in colors else self.name_of(code_of(value))
                )
            except KeyError as error:
                if value != 255:
                    code = error.args[0]
                    raise InputError(
                        f'{self.file} names no class for the mask value {code}; {self.remedy(code)}'
                    ) from None
                name_of_value[value] = None
        return name_of_value


def code_of(value: int) -> str:
    """The code of a mask value: a number, or a color such as ``#ff0000``."""
    return str(value) if value < FIRST_COLOR else f'#{value - FIRST_COLOR:06x}'

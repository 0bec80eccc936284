"""The units of boxes: pixels or fractions of the size, and corners, centers or sizes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anyfolder.errors import InputError
from anyfolder.readers.records import Instance

# The key of BOX_FORMS (in anyfolder.readers.geometry) for each word for the form of boxes.
FORMS = {'size': 'xywh', 'corners': 'xyxy', 'center': 'center'}
# The property that each word of the key `units` states. One word for a property may be given.
WORDS = dict.fromkeys(FORMS, 'form') | {'pixels': 'scale', 'relative': 'scale', 'from 1': 'origin'}
# The columns with the four numbers of each form. The first form is taken that has all of them.
COLUMNS_OF_FORM = {
    'xyxy': ('left', 'top', 'right', 'bottom'),
    'xywh': ('left', 'top', 'width', 'height'),
    'center': ('x', 'y', 'width', 'height'),
}


class BoxUnits(NamedTuple):
    """The units of boxes, as far as they are stated.

    Attributes:
        form: a key of BOX_FORMS; empty if not stated.
        relative: whether boxes are in fractions of the image's width and height; None if not
            stated.
        from_1: whether pixels are counted from 1 rather than from 0.
    """

    form: str = ''
    relative: bool | None = None
    from_1: bool = False

    @classmethod
    def of(cls, words: Sequence[str], where: str) -> 'BoxUnits':
        """The units that some of :data:`WORDS` stand for.

        Args:
            words: keys of :data:`WORDS`.
            where: the position of the words, for messages.

        Raises:
            InputError: if two of them contradict each other.
        """
        properties = [WORDS[word] for word in words]
        twice = [word for word in words if properties.count(WORDS[word]) > 1]
        if twice:
            raise InputError(f'{where}: {" and ".join(twice)} contradict each other; keep one.')
        form = next((FORMS[word] for word in words if word in FORMS), '')
        relative = 'relative' in words if 'scale' in properties else None
        return cls(form, relative, 'from 1' in words)

    def apply(self, instance: Instance) -> Instance:
        """Replace the units of an object by the stated ones, and return the object."""
        instance.form = self.form or instance.form
        if self.relative is not None:
            instance.relative = self.relative
        instance.from_1 = self.from_1
        return instance

    def of_columns(self, values: Mapping[str, float], origin: str) -> Instance:
        """An object, without a class, whose box is given by columns such as left and right.

        Args:
            values: the number in each column; at least the columns of one form.
            origin: the position of the object, for messages.
        """
        form, names = next(
            (form, names) for form, names in COLUMNS_OF_FORM.items() if values.keys() >= {*names}
        )
        # `units` state whether x and y are the center or the upper left corner.
        units = self if form == 'center' else self._replace(form=form)
        box = [values[name] for name in names]
        return units.apply(Instance(name='', box=box, origin=origin))

"""The units of boxes: pixels or fractions of the size, and corners, centers or sizes."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from anyfolder.errors import InputError
from anyfolder.readers.records import Instance

# The words of ``units``. WORDS has the kind of each; only one word of a kind may be stated. The
# values of FORMS are keys of BOX_FORMS.
FORMS = {'size': 'xywh', 'corners': 'xyxy', 'center': 'center'}
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
        relative: whether they are fractions of the width and height; None if not stated.
        from_1: whether pixels are counted from 1 rather than from 0.
    """

    form: str = ''
    relative: bool | None = None
    from_1: bool = False

    @classmethod
    def of(cls, words: Sequence[str], where: str) -> 'BoxUnits':
        """The units that some of :data:`WORDS` stand for.

        Raises:
            InputError: if two of them contradict each other.
        """
        kinds = [WORDS[word] for word in words]
        twice = [word for word in words if kinds.count(WORDS[word]) > 1]
        if twice:
            raise InputError(f'{where}: {" and ".join(twice)} contradict each other; keep one.')
        form = next((FORMS[word] for word in words if word in FORMS), '')
        relative = 'relative' in words if 'scale' in kinds else None
        return cls(form, relative, 'from 1' in words)

    def apply(self, instance: Instance) -> Instance:
        """Replace the units of an object by the stated ones."""
        instance.form = self.form or instance.form
        if self.relative is not None:
            instance.relative = self.relative
        instance.from_1 = self.from_1
        return instance

    def of_columns(self, values: Mapping[str, float], origin: str) -> Instance:
        """An object with a box whose numbers are given by column, such as left and right."""
        form, names = next(
            (form, names) for form, names in COLUMNS_OF_FORM.items() if values.keys() >= {*names}
        )
        # `units` state whether x and y are the center or the upper left corner.
        units = self if form == 'center' else self._replace(form=form)
        box = [values[name] for name in names]
        return units.apply(Instance(name='', box=box, origin=origin))

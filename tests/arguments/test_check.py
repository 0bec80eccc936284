"""Arguments are checked by the annotations of a constructor, and errors are one sentence."""

import copy
import inspect
import pickle
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.config import Config, ConfigDict
from mmengine.model import BaseModule
from mmengine.registry import MODELS as MMENGINE_MODELS
from pydantic import Field
from rejection import rejects
from typing_extensions import Required, TypedDict, Unpack

from vit_plugin.arguments import checked, fits
from vit_plugin.arguments.fields import PositiveInt, Rate, Size
from vit_plugin.arguments.foreign import Part
from vit_plugin.errors import ConfigError
from vit_plugin.models import SimpleFPN, TokenPooling
from vit_plugin.models.layers.grid_resize import TABLE_INTERPOLATIONS, Interpolation
from vit_plugin.models.layers.numerics import NUMERICS, NumericsName
from vit_plugin.models.layers.outputs import OUT_TYPES, OutType
from vit_plugin.models.layers.pos_embed import POS_EMBEDS, PosEmbedName
from vit_plugin.models.stems.padding import PADDINGS, Padding


class Window(TypedDict, total=False):
    size: Required[PositiveInt]
    global_blocks: Sequence[int]


class Options(TypedDict, total=False):
    window: Window | None
    rate: Rate


@checked
class Layer(BaseModule):
    """A layer with each form of annotation that the check supports."""

    # Former arguments, each with what to write instead.
    renamed_arguments = {'dropout': 'encoder=dict(rate=...)'}

    def __init__(
        self,
        width: PositiveInt,
        mode: Literal['left', 'right'] = 'left',
        size: Size = 4,
        bias: bool = True,
        encoder: Options | None = None,
        scales: Sequence[float] = (),
        pair: tuple[Rate, Rate] = (0.0, 0.0),
        init_cfg: dict | None = None,
    ) -> None:
        super().__init__(init_cfg)
        self.width, self.encoder, self.scales = width, encoder, scales


@checked
class Child(Layer):
    def __init__(self, *args: Any, more: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.more = more


@pytest.mark.parametrize(
    ('kwargs', 'sentence'),
    [
        (dict(), 'Layer needs width; give it.'),
        (dict(width='3'), "Layer: width='3' must be a valid integer."),
        (dict(width=True), 'Layer: width=True must be a valid integer.'),
        (dict(width=2.0), 'Layer: width=2.0 must be a valid integer.'),
        (dict(width=10**12), 'Layer: width=1000000000000 must be less than or equal to 16777216.'),
        (
            dict(width=3, mode='rigth'),
            "Layer: mode='rigth' must be 'left' or 'right'; did you mean 'right'?",
        ),
        (
            dict(width=3, size=(1, 2, 3)),
            'Layer: size=(1, 2, 3) must be a valid integer or have at most 2 items after '
            'validation, not 3.',
        ),
        (dict(width=3, size=(1, -2)), 'Layer: size[1]=-2 must be greater than or equal to 1.'),
        (dict(width=3, pair=(0.5,)), 'Layer: pair has 1 item; give more.'),
        (dict(width=3, size='3'), "Layer: size='3' must be a valid integer or be a list."),
        (dict(width=3, bias=None), 'Layer: bias=None must be a valid boolean.'),
        (dict(width=3, encoder=3), 'Layer: encoder=3 must be a valid dictionary.'),
        (dict(width=3, encoder=dict(rate=1)), 'Layer: encoder.rate=1 must be less than 1.'),
        (
            dict(width=3, encoder=dict(rat=1)),
            'Layer: encoder takes no rat (given rat=1); did you mean rate?',
        ),
        (dict(width=3, encoder=dict(window=dict())), 'Layer: encoder.window needs size; give it.'),
        (
            dict(width=3, encoder=dict(window=dict(sise=3))),
            'Layer: encoder.window takes no sise (given sise=3); did you',
        ),
        (
            dict(width=3, encoder=dict(window=dict(size=2, global_blocks=(1, '2')))),
            "Layer: encoder.window.global_blocks[1]='2' must be a valid integer.",
        ),
        (dict(width=3, scales=[1, float('nan')]), 'Layer: scales[1]=nan must be a finite number.'),
        (dict(width=3, widht=4), 'Layer takes no widht (given widht=4); did you mean width?'),
        (
            dict(width=3, depth=50, style='pytorch'),
            'Layer takes no depth (given depth=50); did you mean width? To '
            'drop the arguments that a base config has for another class, add _delete_=True.',
        ),
        (
            dict(width=3, zzz=4),
            'Layer takes no zzz (given zzz=4); it takes width, mode, size, bias, encoder, scales, '
            'pair, init',
        ),
        (
            dict(width=3, dropout=0.1),
            'Layer takes no dropout any more; write encoder=dict(rate=...).',
        ),
    ],
)
def test_each_invalid_argument_raises_its_sentence(kwargs, sentence):
    with pytest.raises(ConfigError) as error:
        Layer(**kwargs)
    assert str(error.value).startswith(sentence)


def test_positional_arguments_are_checked():
    assert Layer(3, 'right').width == 3
    with rejects('width is given by position and by name'):
        Layer(3, width=4)
    with rejects('width is given by position and by name'):  # the first of two
        Layer(3, 'left', mode='left', width=4)
    with rejects('Layer takes 8 arguments by position, got 9'):
        Layer(3, 'left', 4, True, None, (), (0.0, 0.0), None, 1)


def test_values_are_passed_on_unchanged():
    encoder = ConfigDict(window=dict(size=3, global_blocks=[1, 2]))
    scales = [1, 2.5]
    layer = Layer(3, encoder=encoder, scales=scales)
    assert layer.encoder is encoder
    assert layer.scales is scales


@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.text(),
        st.floats(),
        st.binary(),
        st.lists(st.integers()),
        st.integers(max_value=0),
    )
)
def test_values_of_other_types_or_ranges_raise(value):
    with rejects(r'^Layer: width=.* must be (a valid integer|greater than or equal to 1)\.$'):
        Layer(value)


@given(
    st.integers(1, 100),
    st.floats(0, 1, exclude_max=True),
    st.lists(st.floats(-9, 9)),
    st.booleans(),
)
def test_valid_values_are_accepted(width, rate, scales, bias):
    assert Layer(width, bias=bias, encoder=dict(rate=rate), scales=tuple(scales)).width == width


def test_subclasses_are_checked_by_the_annotations_of_their_parents():
    assert Child(3, 'right', more=2).more == 2
    for args, kwargs, words in [
        ((3,), dict(more='2'), "Child: more='2' must be a valid integer"),
        ((3,), dict(moer=2), 'Child takes no moer .* did you mean more'),
        (('3',), {}, "Child: width='3' must be"),
        ((3,), dict(encodr={}), 'did you mean encoder'),
        ((3,), dict(dropout=1), 'takes no dropout any more; write encoder=dict'),
        ((), {}, 'needs width'),
    ]:
        with rejects(words):
            Child(*args, **kwargs)


def test_subclasses_of_users_may_fill_in_arguments():
    class UserNeck(SimpleFPN):
        def __init__(self, depth, **kwargs):
            super().__init__(in_channels=16, **kwargs)
            self.depth = depth

    assert UserNeck('anything', out_channels=8).depth == 'anything'
    with rejects("SimpleFPN: out_channels='8' must be"):
        UserNeck(1, out_channels='8')
    assert checked(UserNeck)(1, out_channels=8).depth == 1


def test_only_argument_names_of_foreign_parents_are_checked():
    class Foreign:
        def __init__(self, wrongly_annotated: str = 3, other=1):
            pass

    Foreign.__init__.__module__ = 'foreign'

    @checked
    class Subclass(Foreign):
        def __init__(self, own: int, **kwargs: Any):
            super().__init__(**kwargs)

    assert Subclass(1, wrongly_annotated=3)
    with rejects('did you mean other'):
        Subclass(1, othr=3)


def test_keyword_arguments_of_a_typed_dict_are_checked():
    @checked
    class Windowed:
        def __init__(self, *args: Any, **kwargs: Unpack[Window]):
            self.kwargs = kwargs

    assert Windowed(size=3).kwargs == dict(size=3)
    with rejects('Windowed needs size'):
        Windowed()


def test_a_class_without_a_constructor_takes_nothing():
    @checked
    class Bare:
        pass

    assert Bare()
    with rejects(r'Bare takes no width \(given width=3\); it takes none'):
        Bare(width=3)


def test_assertions_of_base_classes_become_one_sentence():
    class Foreign:
        def __init__(self):
            raise AssertionError('Please choose.')

    with rejects(r'^Subclass: Please choose \(AssertionError\); see its docstring'):
        checked(type('Subclass', (Foreign,), {}))()


def test_unresolvable_annotations_accept_anything():
    @checked
    class Unresolvable:
        def __init__(self, width: PositiveInt, odd: Annotated['NotDefined', Field()] = 1):  # noqa: F821
            pass

    assert Unresolvable(3, object())


def test_checked_classes_keep_their_signature_and_can_be_copied_and_pickled():
    assert list(inspect.signature(SimpleFPN).parameters)[:2] == ['in_channels', 'out_channels']
    assert SimpleFPN.__init__.__doc__ == SimpleFPN.__init__.__wrapped__.__doc__
    neck = TokenPooling('avg', 1)
    x = (torch.randn(1, 5, 8),)
    for copied in (copy.deepcopy(neck), pickle.loads(pickle.dumps(neck))):
        assert torch.equal(copied(x)[0], neck(x)[0])


def test_classes_in_configs_are_checked():
    cfg = Config(dict(neck=dict(type='vit_plugin.SimpleFPN', in_channels=[8, 16], out_chanels=8)))
    with rejects(r'^SimpleFPN takes no out_chanels .* did you mean out_channels\?$'):
        MMENGINE_MODELS.build(cfg.neck)
    with rejects("type='SimpleFNP' is not in vit_plugin; did you mean vit_plugin.SimpleFPN"):
        MMENGINE_MODELS.build(dict(type='vit_plugin.SimpleFNP'))


@pytest.mark.parametrize(
    ('names', 'table'),
    [
        (OutType, OUT_TYPES),
        (Interpolation, TABLE_INTERPOLATIONS),
        (Padding, PADDINGS),
        (NumericsName, NUMERICS),
        (PosEmbedName, [*POS_EMBEDS, 'relative']),
    ],
)
def test_literal_types_have_the_names_of_their_table(names, table):
    """They are written out for editors and type checkers, which cannot read a table."""
    assert get_args(names) == tuple(table)


@pytest.mark.parametrize('value', [Fraction(1, 3), Decimal('0.25')])
def test_numbers_that_torch_does_not_take_raise(value):
    with rejects(r'Layer: encoder\.rate=.* must be a plain number: 0\.'):
        Layer(4, encoder=dict(rate=value))
    with rejects(r'Layer: size\[1\]=.* must be a plain number: 0\.'):
        Layer(4, size=(4, value))


def test_a_part_may_be_a_list_of_configs():
    """MMEngine builds them in sequence, such as the necks FPN and DyHead."""
    assert fits(Part, [dict(type='FPN'), dict(type='DyHead')])
    for value in ([], [3], [dict(type='FPN'), None], 'FPN'):
        assert not fits(Part, value)

"""The options of ``encoder``: checks, hints and documentation follow from their fields."""

from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from rejection import rejects

from vit_plugin.arguments import Signature, check
from vit_plugin.arguments.encoder_options import (
    CREATING_OPTIONS,
    OPTIONS,
    BlockOptions,
    EncoderCfg,
    option,
    read_options,
    typed_entries,
)
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import BlockCfg, TransformerBlock
from vit_plugin.weights.patterns import Pattern


def test_an_option_is_added_in_one_place(monkeypatch):
    """The check, and lists with a value for each block, follow from the field."""

    @dataclass(frozen=True, kw_only=True)
    class OneMoreOption(BlockOptions):
        sandwich: bool = option(False, 'a norm after the MLP')

    monkeypatch.setattr('vit_plugin.arguments.encoder_options.BlockOptions', OneMoreOption)
    _, blocks = read_options(dict(sandwich=[True, False]), num_layers=2)
    assert [options.sandwich for options in blocks] == [True, False]
    accepted = Signature(typed_entries(OneMoreOption, each_block=True))
    check('encoder', accepted, (), dict(sandwich=[True, False]))
    with rejects('sandwich=3 must be a valid boolean'):
        check('encoder', accepted, (), dict(sandwich=3))


def test_every_option_is_accepted_and_block_options_reach_the_block(tiny):
    assert set(EncoderCfg.__annotations__) == set(OPTIONS)
    assert {option.name for option in fields(BlockOptions)} < {
        option.name for option in fields(BlockCfg)
    }
    defaults = {name: option.default for name, option in OPTIONS.items() if name != 'num_kv_heads'}
    assert str(VisionTransformer(**tiny, encoder=defaults)) == str(VisionTransformer(**tiny))
    with rejects('takes no qk_nrom .* did you mean qk_norm'):
        VisionTransformer(**tiny, encoder=dict(qk_nrom=True))


@pytest.mark.parametrize(('pattern', 'argument'), CREATING_OPTIONS.items(), ids=str)
def test_hints_of_loading_name_options_that_create_the_parameters(tiny, pattern, argument):
    """With the option of the hint, the model has a parameter of the pattern."""
    # '...' in a hint stands for any number.
    encoder = eval(argument.replace('...', '2').removeprefix('encoder='))
    matches = [
        name
        for name, _ in VisionTransformer(**tiny, encoder=encoder).named_parameters()
        if Pattern(pattern).match(name) is not None
    ]
    assert matches


def test_a_block_is_built_from_its_config():
    block = TransformerBlock(
        BlockCfg(
            embed_dims=8,
            num_heads=2,
            feedforward_channels=16,
            layer_scale_init_value=0.1,
            mlp_layer_scale=False,
            qk_norm=True,
        )
    )
    names = {name for name, _ in block.named_parameters()}
    assert {'ls1.gamma', 'attn.q_norm.weight'} <= names
    assert 'ls2.gamma' not in names


def test_docs_have_the_table_of_options():
    page = Path('docs/models.md').read_text()
    for name, entry in OPTIONS.items():
        assert f'| `{name}` | `{entry.default!r}` | {entry.metadata["description"]} |' in page, name


def test_an_empty_window_raises():
    assert read_options(dict(window=None), num_layers=2)[0].window is None
    with rejects('^encoder: window needs size'):
        read_options(dict(window={}), num_layers=2)

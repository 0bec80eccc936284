"""Settings as text that is read back the same."""

from mmengine.config import Config

from vit_plugin.engine.from_data.text import text_of
from vit_plugin.engine.from_data.wish import Recipe, Wish


def test_what_is_written_is_read_back():
    steps = [dict(type='A', scale=(1, 2)), dict(type='B' * 60, name='C' * 60, one=(1, ), none=None, yes=True)]
    loader = dict(pipeline=steps, lr=1e-5, empty=dict(), deep=dict(names=[f'name {i}' for i in range(40)]))
    sections = dict(classes=['a', "b's", 'c"d'], steps=steps, loader=loader, other=loader)
    text = text_of(Recipe('What it does. ' * 20, sections, []), Wish('my data', 'B/16', epochs=3))
    cfg = Config.fromstring(text, '.py').to_dict()
    assert {name: cfg[name] for name in sections} == sections
    assert 'pipeline=steps' in text
    assert 'other = loader\n' in text
    assert "--data 'my data' --arch B/16 --epochs 3 --work-dir 'work_dirs/my data'" in text
    assert max(map(len, text.splitlines())) <= 120

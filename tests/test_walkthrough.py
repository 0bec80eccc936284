"""docs/walkthrough.md: what it prints is what its comments say."""

import re

import pages
import pytest


@pytest.mark.filterwarnings('ignore')
def test_the_walkthrough_prints_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip('sklearn')
    monkeypatch.chdir(tmp_path)
    program = ''.join(block.text for block in pages.blocks('docs/walkthrough.md', 'python'))
    exec(compile(program, 'docs/walkthrough.md', 'exec'), {})
    promised = re.findall(r'^print\(.*\)  # (.+)$', program, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised
    assert len(promised) == program.count('\nprint(')
    assert (tmp_path / 'patches.png').is_file()

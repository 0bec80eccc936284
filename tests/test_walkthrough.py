"""The program of docs/walkthrough.md prints what its comments promise."""

import re

import pages
import pytest


@pytest.mark.filterwarnings('ignore')
def test_the_walkthrough_prints_what_its_comments_promise(tmp_path, monkeypatch, capsys):
    pytest.importorskip('sklearn')
    monkeypatch.chdir(tmp_path)
    program = ''.join(block.text for block in pages.blocks('docs/walkthrough.md', 'python'))
    exec(compile(program, 'docs/walkthrough.md', 'exec'), {})
    promised = re.findall(r'^print\(.*\)  # (.+)$', program, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised
    assert len(promised) == program.count('\nprint(')
    assert (tmp_path / 'patches.png').is_file()

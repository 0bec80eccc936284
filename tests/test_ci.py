"""Workflows, hooks and lists of versions refer to things that exist."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools
import yaml

import vit_plugin

WORKFLOWS = sorted(Path('.github/workflows').glob('*.yml'))
HOOKS = Path('.pre-commit-config.yaml')
FORMS = [Path('.github/dependabot.yml'), *sorted(Path('.github/ISSUE_TEMPLATE').glob('*.yml'))]
CHECKS = Path('.ci/check')
CONSTRAINTS = Path('tests/constraints.txt')
# Programs that a runner's image has.
PREINSTALLED = {'bash', 'pip', 'python', 'test', 'cd', 'set', 'echo', 'docker'}
# The package of a program, if it has another name.
PACKAGES = {'sphinx-build': 'sphinx', 'cyclonedx-py': 'cyclonedx-bom'}
# The permissions of jobs that may do more than read the code.
WRITERS = {
    ('release', 'attest'): {'id-token': 'write', 'attestations': 'write'},
    ('release', 'publish'): {'id-token': 'write'},
}


@pytest.fixture
def project(monkeypatch) -> dict[str, Any]:
    """The arguments of ``setup()``."""
    setup_arguments: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, 'setup', lambda **arguments: setup_arguments.update(arguments))
    runpy.run_path('setup.py')
    return setup_arguments


def steps(workflow: Path) -> list[list[str]]:
    """The command lines of each job, in order."""
    jobs = yaml.safe_load(workflow.read_text())['jobs'].values()
    return [
        [line for step in job['steps'] for line in step.get('run', '').splitlines()] for job in jobs
    ]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r'[<>=;\[ ]', requirement)[0] for requirement in requirements}


@pytest.mark.parametrize('path', FORMS, ids=str)
def test_forms_can_be_read(path):
    assert yaml.safe_load(path.read_text())


@pytest.mark.parametrize('path', WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_uses_existing_extras_files_and_programs(path, project):
    """A program must come with the runner, or be installed by an earlier line of its job."""
    for lines in steps(path):
        installed = set(PREINSTALLED)
        for line in lines:
            for extra in re.findall(r'\.\[([\w,]+)\]', line):
                for name in extra.split(','):
                    installed |= names(project['extras_require'][name])
            if line.startswith('pip install'):
                installed.update(line.split()[2:])
            for file in re.findall(
                r'(?<![\w./])(?:benchmarks|tests|tools|docs|\.ci)/[\w./-]+', line
            ):
                assert Path(file).exists(), line
            program = line.split()[0]
            assert PACKAGES.get(program, program) in installed, line


@pytest.mark.parametrize('path', WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_minimal_permissions(path):
    """It reads the code and has a timeout, and jobs that may write run actions only."""
    text = path.read_text()
    workflow = yaml.safe_load(text)
    assert workflow['permissions'] == dict(contents='read')
    # YAML takes the key `on` for true.
    assert workflow[True].keys() <= {'push', 'pull_request', 'schedule', 'workflow_dispatch'}
    assert 'secrets.' not in text
    for name, job in workflow['jobs'].items():
        assert job.get('permissions', {}) == WRITERS.get((path.stem, name), {}), name
        assert job['timeout-minutes'] <= 180
        for action in (step['uses'] for step in job['steps'] if 'uses' in step):
            assert re.fullmatch(r'(actions|pypa)/[\w-]+@(v\d+|release/v\d+)', action)
        if (path.stem, name) in WRITERS:
            assert not any('run' in step for step in job['steps'])


def test_a_release_is_rebuilt_and_attested():
    build, attest, publish = yaml.safe_load(Path('.github/workflows/release.yml').read_text())[
        'jobs'
    ].values()
    lines = [line for step in build['steps'] for line in step.get('run', '').splitlines()]
    epoch = next(i for i, line in enumerate(lines) if 'SOURCE_DATE_EPOCH' in line)
    assert epoch < lines.index('python -m build')
    assert 'python benchmarks reproducible --against dist' in lines
    sbom = next(line for line in lines if line.startswith('cyclonedx-py'))
    assert attest['steps'][-1]['with']['sbom-path'] in sbom.split()
    assert (attest['needs'], publish['needs']) == ('build', 'attest')


def test_the_dockerfile_uses_existing_files_and_extras(project):
    text = Path('Dockerfile').read_text()
    copied = re.findall(r'^COPY (.*) \S+$', text, re.MULTILINE)
    assert all(Path(name).exists() for names in copied for name in names.split())
    (extras,) = re.findall(r'^ARG EXTRAS=(.*)$', text, re.MULTILINE)
    assert set(extras.split(',')) <= project['extras_require'].keys()
    (python,) = re.findall(r'^ARG PYTHON=(.*)$', text, re.MULTILINE)
    assert f'Programming Language :: Python :: {python}' in project['classifiers']
    assert re.search(r'^USER (?!root)', text, re.MULTILINE)


def test_the_citation_has_this_version():
    assert yaml.safe_load(Path('CITATION.cff').read_text())['version'] == vit_plugin.__version__


def test_hooks_run_programs_of_the_extra_dev(project):
    installed = names(project['extras_require']['dev'])
    for repository in yaml.safe_load(HOOKS.read_text())['repos']:
        for hook in repository['hooks']:
            assert hook['entry'].split()[0] in installed
    assert 'pre-commit' in installed


def test_ci_check_runs_hooks_and_tests():
    assert CHECKS.stat().st_mode & 0o100
    assert {'pre-commit run --all-files', 'python -m pytest'} <= set(
        CHECKS.read_text().splitlines()
    )


def test_the_oldest_pins_are_the_lower_bounds(project):
    """``tests/oldest.txt``, which the matrix installs, pins the lower bounds that setup.py states
    for the package and for its extras ``onedl`` and ``openmmlab``.
    """
    lines = re.findall(r'^[\w-]+==[\d.]+', Path('tests/oldest.txt').read_text(), re.MULTILINE)
    # If a name has several lines, the first is for most versions of Python.
    pinned = dict(line.split('==') for line in reversed(lines))
    requirements = [
        *project['install_requires'],
        *project['extras_require']['onedl'],
        *project['extras_require']['openmmlab'],
    ]
    bounds = dict(
        match.groups()
        for requirement in requirements
        if (match := re.match(r'([\w-]+)>=([\d.]+)', requirement))
    )
    assert bounds
    for name, bound in bounds.items():
        assert re.fullmatch(rf'{re.escape(bound)}(\.0)*', pinned[name]), name


def test_work_arounds_name_the_tested_versions():
    """A new version makes this fail, so that someone tries to do without the work-around."""
    page = Path('CONTRIBUTING.md').read_text().partition('### If the forks stop')[2]
    rows = re.findall(r'^\| (.*?`.*?) \| (.*?) \|', page.partition('\n## ')[0], re.MULTILINE)
    tested = dict(re.findall(r'^([\w-]+)==([\d.]+)', CONSTRAINTS.read_text(), re.MULTILINE))
    assert len(rows) > 3  # the regular expression fits the table
    for location, reason in rows:
        *names, file = re.findall(r'`([\w./-]+)`', location)
        text = Path(file).read_text() if Path(file).is_file() else ''
        assert Path(file).exists(), location
        assert all(name in text for name in names), location
        versions = re.findall(r'(onedl-\w+) ([\d.]+\d)', reason)
        assert versions, reason
        assert all(tested[name] == version for name, version in versions), reason

"""The list of names as a command."""

import re


def test_the_list(run_command):
    lines = run_command('zoo', 'eva02_tiny*').stdout.splitlines()
    assert lines[0].split() == ['name', 'width', 'blocks', 'heads', 'patch', 'size', 'parameters']
    assert lines[1].split() == [
        'eva02_tiny_patch14_224',
        '192',
        '12',
        '3',
        '14',
        '224',
        '5,501,760',
    ]
    shown = run_command('zoo', 'vit_dpwee*').stdout
    assert re.search(
        'vit_dpwee_patch16_reg1_gap_256 +not supported: .*DiffParallelScalingBlock', shown
    )
    assert 'the nearest are' in run_command('zoo', 'vit_tiny', '--as-config').stderr
    assert 'No name fits' in run_command('zoo', 'nothing*').stderr


def test_licenses(run_command):
    lines = run_command('zoo', 'vit_base_patch16_dinov3*', '--licenses').stdout.splitlines()
    assert lines[0].split() == ['vit_base_patch16_dinov3.lvd1689m', 'dinov3-license']

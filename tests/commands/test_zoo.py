"""``zoo`` lists timm's models with their sizes and licenses, and published detectors."""

import re


def test_names_are_listed_with_their_sizes(run_command):
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
    unsupported = run_command('zoo', 'vit_dpwee*').stdout
    assert re.search(
        'vit_dpwee_patch16_reg1_gap_256 +not supported: .*DiffParallelScalingBlock', unsupported
    )
    assert 'the nearest are' in run_command('zoo', 'vit_tiny', '--as-config').stderr
    assert 'No name matches' in run_command('zoo', 'nothing*').stderr
    tagged = run_command('zoo', 'timm://vit_base_patch16_dinov3.lvd1689m').stdout.splitlines()
    assert [line.split()[0] for line in tagged] == ['name', 'vit_base_patch16_dinov3.lvd1689m']


def test_licenses_are_listed(run_command):
    lines = run_command('zoo', 'vit_base_patch16_dinov3*', '--licenses').stdout.splitlines()
    assert lines[0].split() == ['vit_base_patch16_dinov3.lvd1689m', 'dinov3-license']


def test_published_detectors_are_listed(run_command):
    lines = run_command('zoo', '--detectors').stdout.splitlines()
    assert {len(line.split()) for line in lines} == {4}
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    license, pixels, address = rows['rf-detr-nano']
    assert (license, pixels) == ('Apache-2.0', '384')
    assert address.startswith('https://storage.googleapis.com/rfdetr/nano_coco/')
    assert rows['rf-detr-2xl'][0] == 'PML-1.0'
    assert rows['ecseg-s'][0] == 'conflicting'
    assert run_command('zoo', 'lw-*', '--detectors').stdout.split()[0] == 'lw-detr-small'

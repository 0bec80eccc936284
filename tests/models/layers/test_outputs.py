import pytest
import torch

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import export


@pytest.fixture
def apart(tiny) -> VisionTransformer:
    model = VisionTransformer(**{**tiny, 'out_type': 'raw'}, encoder=dict(reg_token=2, final_norm='apart')).eval()
    for parameter in model.norm.parameters():
        torch.nn.init.normal_(parameter)
    return model


def test_prefix_and_patches_have_norms_of_their_own(apart):
    tokens = torch.randn(2, 3 + 16, 32)
    normed = apart.norm(tokens)
    for part, module in ((slice(3), apart.norm.prefix), (slice(3, None), apart.norm.patches)):
        mean, variance = tokens[:, part].mean(-1, keepdim=True), tokens[:, part].var(-1, correction=0, keepdim=True)
        expected = (tokens[:, part] - mean) / (variance + 1e-6).sqrt() * module.weight + module.bias
        torch.testing.assert_close(normed[:, part], expected)


def test_the_class_token_alone_has_its_norm(tiny, apart):
    alone = VisionTransformer(**tiny, encoder=dict(reg_token=2, final_norm='apart')).eval()
    alone.load_state_dict(apart.state_dict())
    images = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(alone(images)[0], apart(images)[0][:, 0])


def test_weights_by_their_authors_names(tiny, apart):
    theirs, left, _ = export(apart.state_dict(), 'timm', 2)
    assert not left
    assert {'norm.weight', 'cls_norm.weight'} <= theirs.keys()
    assert torch.equal(theirs['cls_norm.bias'], apart.norm.prefix.bias)
    other = VisionTransformer(**{**tiny, 'out_type': 'raw'}, encoder=dict(reg_token=2, final_norm='apart')).eval()
    load_weights(other, theirs)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in apart.state_dict().items())
    plain = VisionTransformer(**tiny, encoder=dict(reg_token=2))
    with pytest.raises(ConfigError, match='norm'):
        load_weights(plain, theirs)


def test_the_norm_of_dinov3s_pretraining_may_be_left(tiny):
    """The 7B model's checkpoint has a norm for the class tokens of local crops."""
    source = VisionTransformer(**tiny, encoder=dict(reg_token=2))
    theirs, _, _ = export(source.state_dict(), 'timm', 2)
    theirs['storage_tokens'] = theirs.pop('reg_token')
    theirs |= {f'local_cls_norm.{kind}': torch.ones(32) for kind in ('weight', 'bias')}
    report = load_weights(VisionTransformer(**tiny, encoder=dict(reg_token=2)), theirs)
    assert report.ignored['local_cls_norm.weight'] == 'of pre-training with crops'

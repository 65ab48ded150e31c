"""Models beside the published code, a checkout of which MTAN_REFERENCE names; and state dicts that go in and come out."""

from __future__ import annotations

import os

import numpy as np
import pytest
from conftest import SMALL

import mtan

torch = pytest.importorskip("torch", reason="no torch")

DECODER = {"mlp_hidden": 6, "dec_hidden": 6, "latent": 3}
CLASSIFIERS = {
    "enc": {"enc_heads": 2},
    "enc, one layer": {"head_hidden": 0},
    "fixed": {"options": {"embedding": "fixed"}},
    "full": {"model": "full", "options": {**DECODER, "alpha": 3}},
    "full, heads": {"model": "full", "enc_heads": 2, "options": {**DECODER, "dec_heads": 4, "norm": 0}},
    "rnn3": {"model": "full", "options": {**DECODER, "encoder": "rnn3", "decoder": "rnn3"}},
}


@pytest.fixture(scope="session")
def checkout() -> str:
    path = os.environ.get("MTAN_REFERENCE", "")
    if not path:
        pytest.skip("no checkout of the published code: MTAN_REFERENCE")
    return path


def assert_agree(rows, capsys) -> None:
    printed = capsys.readouterr().out
    assert all(row.ok for row in rows), printed
    assert f"{len(rows)} compared, all within the limits" in printed and "DIFFERS" not in printed


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifiers_agree(kind, checkout, events, data, capsys):
    clf = mtan.Classifier(**{**SMALL, "head_hidden": 6, **CLASSIFIERS[kind]}).fit(events, data[1])
    rows = mtan.compare_with_reference(clf, checkout, events[:9], data[1][:9])
    assert_agree(rows, capsys)
    gradients = [row for row in rows if row.what.startswith("gradient of ")]
    assert len(gradients) == len(clf.model_.tensors()) and max(row.reference for row in gradients) > 1e-3
    assert_agree(mtan.compare_with_reference(clf, checkout, records=3, seed=5), capsys)


def test_times_agree(per_time, checkout, events, capsys):
    assert_agree(mtan.compare_with_reference(per_time, checkout, events[:6]), capsys)


@pytest.mark.parametrize("encoder", ["attention", "rbf"])
def test_curves_agree(encoder, checkout, events, capsys):
    curves = mtan.Interpolator(**SMALL, options={**DECODER, "encoder": encoder, "decoder": encoder}).fit(events)
    assert_agree(mtan.compare_with_reference(curves, checkout, events[:5]), capsys)


def test_a_difference_is_seen(checkout, events, data, capsys):
    clf = mtan.Classifier(**SMALL, head_hidden=6).fit(events, data[1])
    weights = {name: np.array(w) for name, w in clf.model_.tensors().items()}
    weights["rec.classifier.4.bias"][0] += 1e-6
    other = mtan.from_torch(weights, like=clf)
    before, after = (mtan.compare_with_reference(m, checkout, events[:9], data[1][:9]) for m in (clf, other))
    assert abs(before[0].mtan - after[0].mtan) > before[0].limit  # so small a change is far beyond the limit
    assert not before[0]._replace(difference=float("nan")).ok and "DIFFERS" in str(before[0]._replace(difference=1.0))


def test_what_was_not_published_is_refused(checkout, classifier, events, data):
    best = mtan.Classifier(**{**SMALL, "preset": "best"}).fit(events, data[1])
    with pytest.raises(mtan.Error, match="the published code has no statistics = mean,spread,intensity,slope"):
        mtan.compare_with_reference(best, checkout)
    with pytest.raises(mtan.Error, match="no checkout of the published code"):
        mtan.compare_with_reference(classifier, "/nowhere")


def test_published_state_dicts_go_in(checkout, classifier, events):
    """Behind a module of the published code, with its own names."""
    from mtan._compare import _published

    models, _ = _published(checkout)
    torch.manual_seed(1)
    rec = models.enc_mtan_classif(3, torch.linspace(0, 1, 6), 8, 8, 2, True, device="cpu")
    m = mtan.from_torch(rec.state_dict(), ref_points=6, enc_heads=2)
    x, time = (torch.from_numpy(a) for a in classifier.dense(events))
    values = np.where(x[..., 3:] > 0, x[..., :3], np.nan)
    p = m.predict_proba(mtan.Events.from_dense(values, time.numpy()))
    assert np.abs(p - torch.softmax(rec(x, time), -1).detach().numpy()).max() < 2e-6


def test_a_module_comes_back(classifier, events, data, tmp_path):
    net, (x, time) = classifier.to_torch(), (torch.from_numpy(a) for a in classifier.dense(events))
    again = mtan.from_torch(net.state_dict(), like=classifier)
    assert np.array_equal(again.predict_proba(events), classifier.predict_proba(events))
    label = torch.from_numpy((data[1] == "up").astype(np.int64))
    optimiser = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        losses.append(torch.nn.functional.cross_entropy(net(x, time), label))
        losses[-1].backward()
        optimiser.step()
    tuned = mtan.from_torch(net.state_dict(), like=classifier)
    tuned.save(tmp_path / "m.safetensors")
    p = mtan.load(tmp_path / "m.safetensors").predict_proba(events)
    assert losses[-1] < losses[0]
    assert np.abs(p - torch.softmax(net(x, time), -1).detach().numpy()).max() < 2e-6
    with pytest.raises(mtan.Error, match=r"rec.enc.weight_hh_l0 is missing, and the model has \(24, 8\)"):
        mtan.from_torch({k: v for k, v in net.state_dict().items() if "weight_hh" not in k}, like=classifier)
    with pytest.raises(mtan.Error, match="settings or a model to be like"):
        mtan.from_torch(net.state_dict(), like=classifier, ref_points=6)
    with pytest.raises(mtan.Error):
        mtan.from_torch({"something": torch.zeros(3)})

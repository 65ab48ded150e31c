"""Models as torch modules: the numbers of predict, gradients of times and values, names of the published code."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import BEST, KINDS, SMALL, with_static

import mtan

torch = pytest.importorskip("torch", reason="no torch")


def inputs(estimator, X) -> list[torch.Tensor]:
    return [torch.from_numpy(a) for a in estimator.dense(X)]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_predict(kind, events, data):
    X = with_static(data[0]) if kind.startswith("static") else events
    clf = mtan.Classifier(**{"head_hidden": 6, **KINDS[kind]}).fit(X, data[1])
    net, (x, time) = clf.to_torch(), inputs(clf, X)
    x.requires_grad_(), time.requires_grad_()
    out = net(x, time)
    logits = getattr(out, "logits", out)
    expected = clf.predict_proba(X, samples=0)
    assert np.abs(torch.softmax(logits, -1).detach().numpy() - expected).max() < 2e-6
    logits[:, 0].sum().backward()
    assert x.grad.isfinite().all() and time.grad.isfinite().all()
    assert time.grad.abs().max() > 0 or "trees" in kind  # which may leave the network no share
    assert kind == "ensemble" or {name for name, _ in net.named_parameters()} <= set(clf.model_.tensors())


def test_times_are_classified(per_time, events):
    logits = per_time.to_torch()(*inputs(per_time, events))
    for rows, expected in zip(torch.softmax(logits, -1).detach().numpy(), per_time.predict_proba(events)):
        assert np.abs(rows[: len(expected)] - expected).max() < 2e-6


@pytest.mark.parametrize("variance", ["fixed", "learned"])
def test_curves_are_those_of_predict(variance, events):
    curves = mtan.Interpolator(variance=variance, dec_hidden=6, latent=3, options={"mlp_hidden": 6}, **SMALL).fit(events)
    at = np.linspace(0, 12, 7)
    scale = np.array(curves.model_.text("mtan.prep.scale").split(), dtype=float)
    shift = np.array(curves.model_.text("mtan.prep.offset").split(), dtype=float)
    unit = float(curves.model_.text("mtan.time.scale").split()[0])
    grid = torch.from_numpy(np.tile(at / unit, (len(events), 1)).astype(np.float32))
    out = curves.to_torch()(*inputs(curves, events), at=grid)
    mean, sd = curves.predict(events, at, samples=0)
    assert np.abs(out.prediction.detach().numpy() * scale + shift - mean).max() < 2e-5
    assert np.abs(out.mean.detach().numpy() - curves.embed(events)).max() < 2e-6
    if variance == "learned":
        assert np.abs(out.sd.detach().numpy() * scale - sd).max() < 2e-5 and sd.std() > 0
    else:
        assert out.sd is None


def test_samples_go_through_the_module(events):
    curves = mtan.Interpolator(dec_hidden=6, latent=3, options={"mlp_hidden": 6}, **SMALL).fit(events)
    net, (x, time) = curves.to_torch(), inputs(curves, events)
    noise = torch.zeros(4, len(x), 6, 3)
    noise[1:].normal_(generator=torch.Generator().manual_seed(0))
    drawn = net(x, time, noise=noise).prediction.unflatten(0, (4, -1))
    assert torch.allclose(drawn[0], net(x, time).prediction, atol=1e-6) and not torch.allclose(drawn[0], drawn[1])


def test_gradients_of_times_and_values_are_differences(events, data):
    options = {"trees": 0, "summaries": 1}  # others are rounded
    clf = mtan.Classifier(head_hidden=6, options=options, **BEST).fit(events, data[1])
    net = clf.to_torch().double()
    x, time = (a[:2].double() for a in inputs(clf, events))
    mask = x[..., 3:]

    def logits(values, at):
        return net(torch.cat([values, mask], -1), at)

    used = time + torch.where(mask.any(-1), 0, 1.5)  # times of padding are not the same as any other
    assert torch.autograd.gradcheck(logits, (x[..., :3].clone().requires_grad_(), used.requires_grad_()), atol=1e-6)


def test_gradients_of_rounded_numbers_are_those_of_plain_ones(events, data, monkeypatch):
    clf = mtan.Classifier(head_hidden=6, options={"trees": 0}, **BEST).fit(events, data[1])
    x, time = (a[:2].double() for a in inputs(clf, events))

    def gradient():
        values = x.clone().requires_grad_()
        clf.to_torch().double()(values, time).sum().backward()
        return values.grad[..., :3]

    rounded = gradient()
    monkeypatch.setattr("mtan._torch._rounded", lambda number: number)
    assert torch.isfinite(rounded).all() and torch.allclose(rounded, gradient(), atol=1e-3 * rounded.abs().max())


def test_what_has_no_module_is_refused(events, data):
    rbf = mtan.Interpolator(options={"encoder": "rbf", "mlp_hidden": 6}, dec_hidden=6, latent=3, **SMALL).fit(events)
    with pytest.raises(mtan.Error, match="knows attention, and this model's encoder is rbf"):
        rbf.to_torch()
    baseline = mtan.Classifier("gru-d", preset="correct", epochs=1, enc_hidden=4).fit(events, data[1])
    with pytest.raises(mtan.Error, match="knows mTAND-Enc and mTAND-Full, and this is a gru-d"):
        baseline.to_torch()

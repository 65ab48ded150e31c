"""What notebooks show, and the notebook of tools/python/examples, which is run."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from conftest import ROOT, SMALL

import mtan


def figures(estimator) -> list[ElementTree.Element]:
    """As a browser would read them: SVG is XML."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg xmlns=.*?</svg>", estimator._repr_html_(), re.S) if "role" in svg]


def titles(estimator) -> list[str]:
    return [figure[0].text or "" for figure in figures(estimator)]


def test_a_classifier_shows_its_training_and_its_roc(classifier, events, data):
    from sklearn.metrics import roc_auc_score

    loss, roc = titles(classifier)
    kept_apart = np.array(list(classifier.model_.text("mtan.split.given"))) == "2"
    p = classifier.predict_proba(events[kept_apart])[:, 1]
    assert loss == "Loss" and roc == f"ROC, test records: AUC {roc_auc_score(data[1][kept_apart] == 'up', p):.3f}"
    assert len(titles(mtan.Classifier())) == 0
    assert set(classifier._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_roc_is_scikit_learns():
    from sklearn.metrics import roc_auc_score

    from mtan._plots import roc

    rng = np.random.default_rng(0)
    score, positive = rng.integers(0, 8, 200) / 8, rng.uniform(size=200) < 0.4  # many are equal
    assert f"AUC {roc_auc_score(positive, score):.3f}<" in roc(score, positive, "records")


def test_numbers_and_curves_have_bands(events, data):
    reg = mtan.Regressor(interval=0.8, validation=0.25, **SMALL).fit(events, data[2])
    assert titles(reg) == ["Loss", "Numbers of validation records"]
    curves = mtan.Interpolator(dec_hidden=6, latent=3, options={"mlp_hidden": 6}, **SMALL).fit(events)
    assert len(titles(curves)) == 2 and re.match(r"(BP|heat|pulse) of r\d+$", titles(curves)[1])
    assert [len(figures(e)[0].findall("{*}polyline")) for e in (reg, curves)] == [2, 1]  # curves are validated by another loss
    for estimator in (reg, curves):
        assert figures(estimator)[1].find("{*}polygon") is not None


def test_names_are_escaped():
    from mtan._plots import Curve, figure

    made = ElementTree.fromstring(figure("<b>&", 'x"', "y", [Curve("a<b", [1, 2, np.nan], [1, np.inf, 3])]))
    assert made[0].text == "<b>&"


def test_the_example_runs():
    nbformat = pytest.importorskip("nbformat", reason="no nbformat")
    nbclient = pytest.importorskip("nbclient", reason="no nbclient")
    pytest.importorskip("ipykernel", reason="no ipykernel")
    notebook = nbformat.read(ROOT / "tools" / "python" / "examples" / "patients.ipynb", as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [out["data"].get("text/html", "") for cell in notebook.cells for out in cell.get("outputs", []) if "data" in out]
    assert sum('role="img"' in text for text in shown) == 2

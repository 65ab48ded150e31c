"""scikit-learn's own tools with events."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import SMALL
from sklearn.utils.estimator_checks import parametrize_with_checks

import mtan

FEW = {**SMALL, "epochs": 2}
LEARNS = {**SMALL, "epochs": 60}
FRAMES = "a frame has to say which column is what: Events(frame, record=...)"
EXPECTED = {"check_classifier_data_not_an_array": FRAMES, "check_regressor_data_not_an_array": FRAMES}


@parametrize_with_checks(
    [mtan.Classifier(**LEARNS), mtan.Regressor(**LEARNS)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_arrays_go_by_scikit_learns_rules(estimator, check):
    check(estimator)


def test_clone_and_params(classifier):
    from sklearn.base import clone, is_classifier, is_regressor

    again = clone(classifier)
    assert again.get_params() == classifier.get_params() and not hasattr(again, "model_")
    assert again.set_params(lr=0.5).lr == 0.5
    assert is_classifier(mtan.Classifier()) and is_regressor(mtan.Regressor())
    with pytest.raises(ValueError):
        again.set_params(learning_rate=1)


def test_cross_validation(events, data):
    from sklearn.model_selection import GroupKFold, cross_val_predict, cross_val_score

    scores = cross_val_score(mtan.Classifier(**FEW), events, data[1], cv=3, scoring="roc_auc", error_score="raise")
    assert scores.shape == (3,) and np.all(scores > 0.3)
    groups = np.arange(len(events)) // 2
    p = cross_val_predict(
        mtan.Classifier(**FEW), events, data[1], groups=groups, cv=GroupKFold(2), method="predict_proba"
    )
    assert p.shape == (len(events), 2)
    assert cross_val_score(mtan.Regressor(**FEW), events, data[2], cv=2, error_score="raise").shape == (2,)


def test_grid_search(events, data):
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(mtan.Classifier(**FEW), {"enc_hidden": [4, 8]}, cv=2, error_score="raise").fit(events, data[1])
    assert search.best_params_["enc_hidden"] in (4, 8) and search.predict(events).shape == (len(events),)


def test_calibration(events, data):
    from sklearn.calibration import CalibratedClassifierCV

    clf = CalibratedClassifierCV(mtan.Classifier(**FEW), cv=2).fit(events, data[1])
    assert np.allclose(clf.predict_proba(events).sum(axis=1), 1)

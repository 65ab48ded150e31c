"""Without pandas, polars, pyarrow and scikit-learn: arrays in, a model, a prediction."""

import importlib.util

import numpy as np

import mtan

for name in ("pandas", "polars", "pyarrow", "sklearn"):
    assert importlib.util.find_spec(name) is None, f"{name} is installed: this is no bare environment"

rng = np.random.default_rng(0)
y = np.arange(60) % 2
values = rng.normal(size=(60, 8, 2)) + y[:, None, None]
values[rng.uniform(size=values.shape) < 0.5] = np.nan
clf = mtan.Classifier(embed_size=8, enc_hidden=8, ref_points=6, epochs=3, preset="correct").fit(values, y)
p = clf.predict_proba(values)
assert p.shape == (60, 2) and np.allclose(p.sum(axis=1), 1)
assert clf.set_params(lr=0.1).get_params()["lr"] == 0.1
assert 0 <= clf.score(values, y) <= 1
assert mtan.Regressor(embed_size=8, enc_hidden=8, ref_points=6, epochs=3, preset="correct").fit(values, y * 1.5).score(values, y) < 1

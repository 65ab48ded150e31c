"""Multi-Time Attention Networks (Shukla & Marlin, ICLR 2021): learn from sparse, irregular, multivariate time series.

    import mtan
    X = mtan.Events(df, record="stay", time="t", channel="var", value="x")
    clf = mtan.Classifier(seed=0).fit(X, y)
    clf.predict_proba(X)

The C code of the `mtan` command does the work: model files have the same bytes, and predictions the same bits.
"""

from ._flat import Error, flat
from .estimators import Classifier, Interpolator, Regressor, load
from .events import Events
from .exchange import compare_with_reference, from_torch

__version__ = flat.version().decode()
__all__ = ["Classifier", "Error", "Events", "Interpolator", "Regressor", "compare_with_reference", "from_torch", "load"]

"""What compiled code asks of an object and follows: no class of a guest's says something else.

Stopped by: sandbox.policy.catalog, sandbox.classes.
"""

import pytest

from agex.errors import SandboxTypeError

START = """
import numpy as np
from scipy import interpolate, sparse, spatial
from scipy.stats import qmc
points = np.random.RandomState(0).rand(20, 2)
"""

WHOLE = {
    "positions in a matrix": "class M(sparse.csr_matrix): pass\nm = M(np.eye(4)); m.indices = np.full(4, 10**9, 'i4'); m.toarray()",
    "positions by a property": "class M(sparse.csr_array):\n  indptr = property(lambda s: np.full(5, 10**9, 'i4'), lambda s, v: None)\nM(np.eye(4)).toarray()",
    "pairs of positions": "class M(sparse.coo_matrix): pass\nm = M(np.eye(4)); m.row = np.full(4, 10**9, 'i4'); m.toarray()",
    "triangles": "class D(spatial.Delaunay): pass\nd = D(points); d.simplices = d.neighbors = np.full((1, 3), 10**8, 'i4'); d.find_simplex(points)",
    "values at points": "class I(interpolate.LinearNDInterpolator): pass\ni = I(points, np.arange(20.0)); i.values = np.zeros((0, 1)); i(points)",
    "a degree": "class B(interpolate.BSpline): pass\nb = B(np.arange(10.0), np.zeros(6), 3); b.k = -5; b([4.5])",
    "dimensions": "class S(qmc.Sobol): pass\ns = S(2); s.d = 10**6; s.random(4)",
}


@pytest.mark.parametrize("name", WHOLE)
def test_classes_of_scipy_are_what_their_code_makes_them(room, name):
    result = room("scipy", "numpy").run(START + WHOLE[name])

    assert isinstance(result.error, SandboxTypeError)
    assert "cannot inherit from" in str(result.error)


MODELS = """
import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.feature_extraction import FeatureHasher
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
X = np.random.RandomState(0).rand(30, 4)
y = (X[:, 0] > 0.5).astype(int)
"""

TRUSTED = {
    "support vectors": "class S(SVC): pass\nm = S(kernel='precomputed').fit(X @ X.T, y); m.support_ = np.full(30, 10**9, 'i4'); m.predict(X @ X.T)",
    "support vectors of its own": "class S(SVC):\n  support_ = property(lambda s: np.full(30, 10**9, 'i4'), lambda s, v: None)\nS(kernel='precomputed').fit(X @ X.T, y).predict(X @ X.T)",
    "a tree that passes by": "seen = []\nclass S(DecisionTreeClassifier): tree_ = property(lambda s: seen[-1], lambda s, v: seen.append(v))\nm = S().fit(X, y); seen[-1].children_left[0] = 10**9; m.predict(X)",
    "a tree of more columns": "class S(DecisionTreeClassifier): pass\nm = S().fit(X, y); m.n_features_in_ = 1; m.predict(X[:, :1])",
    "a tree of more columns among others": "m = GradientBoostingRegressor(n_estimators=2).fit(X, y)\nm.estimators_[1, 0] = DecisionTreeRegressor().fit(np.hstack([np.zeros((30, 10**5)), X]), y)\nm.predict(X)",
    "centers of other points": "class S(KMeans): pass\nm = S(2, n_init=1).fit(X); m.cluster_centers_ = np.zeros((2, 10**7)); m.predict(X)",
    "no columns": "FeatureHasher(n_features=0).transform([{'a': 1}])",
}  # fmt: skip


@pytest.mark.parametrize("name", TRUSTED)
def test_models_are_what_they_were_fitted_to(room, name):
    assert room("sklearn", "numpy").refuses(MODELS + TRUSTED[name])


def test_models_of_its_own_work(room, native):
    source = (
        MODELS
        + """
from sklearn.base import BaseEstimator, ClassifierMixin

class Own(SVC):
    def fit(self, X, y):
        super().fit(X, y)
        self.mean_ = X.mean()
        return self

class Stump(BaseEstimator, ClassifierMixin):
    def fit(self, X, y):
        self.tree_ = DecisionTreeClassifier(max_depth=1).fit(X, y)
        self.n_features_in_, self.classes_ = X.shape[1], np.unique(y)
        return self
    def predict(self, X):
        return self.tree_.predict(X)

class Centers(KMeans):
    def spread(self):
        return float(np.ptp(self.cluster_centers_))

print(Own().fit(X, y).predict(X[:3]), Own().fit(X, y).support_[:3])
print(Stump().fit(X, y).predict(X[:3]), Stump().fit(X, y).score(X, y))
print(Centers(2, n_init=1, random_state=0).fit(X).spread())
m = GradientBoostingRegressor(n_estimators=3).fit(X, y)
print(m.predict(X[:2]), [len(each) for each in m.staged_predict(X)])
print(FeatureHasher(n_features=4).transform([{"a": 1}]).toarray())
"""
    )
    assert room("sklearn", "numpy").printed(source) == native(source)

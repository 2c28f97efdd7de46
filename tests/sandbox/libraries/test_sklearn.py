"""scikit-learn under its policy: models are fitted as natively; the network, files and settings are refused.

Stopped by: sandbox.libraries.sklearn.
"""

import subprocess
import sys

import pytest

from agex.errors import SandboxAttributeError

np = pytest.importorskip("numpy", reason="the extra `test` has numpy")

START = """
import numpy as np
from sklearn.datasets import load_iris, make_classification, make_regression, make_blobs
X, y = load_iris(return_X_y=True)
"""

EVERYDAY = {
    "regression": "from sklearn.linear_model import LinearRegression; m = LinearRegression().fit([[1], [2], [3]], [2, 4, 6]); print(m.coef_.round(6), m.predict([[4]]).round(6), m.score([[1], [2]], [2, 4]))",
    "classification": "from sklearn.linear_model import LogisticRegression; from sklearn.model_selection import train_test_split; from sklearn.metrics import accuracy_score, confusion_matrix; a, b, c, d = train_test_split(X, y, random_state=0); p = LogisticRegression(max_iter=500).fit(a, c).predict(b); print(accuracy_score(d, p), confusion_matrix(d, p))",
    "pipeline": "from sklearn.pipeline import make_pipeline; from sklearn.preprocessing import StandardScaler; from sklearn.svm import SVC; from sklearn.model_selection import cross_val_score; print(cross_val_score(make_pipeline(StandardScaler(), SVC()), X, y, cv=3))",
    "trees": "from sklearn.tree import DecisionTreeClassifier, export_text; m = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y); print(export_text(m), m.feature_importances_.round(3))",
    "forest": "from sklearn.ensemble import RandomForestClassifier; m = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y); print(m.score(X, y), m.predict_proba(X[:1]))",
    "threads": "from sklearn.ensemble import RandomForestClassifier; print(RandomForestClassifier(n_estimators=5, random_state=0, n_jobs=2).fit(X, y).score(X, y))",
    "search": "from sklearn.model_selection import GridSearchCV; from sklearn.neighbors import KNeighborsClassifier; g = GridSearchCV(KNeighborsClassifier(), {'n_neighbors': [1, 3]}, cv=3).fit(X, y); print(g.best_params_, round(g.best_score_, 4))",
    "clusters": "from sklearn.cluster import KMeans; print(KMeans(3, n_init=2, random_state=0).fit(X).inertia_)",
    "components": "from sklearn.decomposition import PCA; print(np.abs(PCA(2).fit_transform(X)[0]).round(4))",
    "encoding": "from sklearn.preprocessing import OneHotEncoder, LabelEncoder; print(OneHotEncoder().fit_transform([['a'], ['b']]).toarray(), LabelEncoder().fit_transform(['b', 'a']))",
    "text": "from sklearn.feature_extraction.text import TfidfVectorizer; v = TfidfVectorizer(); m = v.fit_transform(['a bc', 'bc de']); print(m.shape, v.get_feature_names_out(), m.toarray().round(3))",
    "own transformer": "from sklearn.base import BaseEstimator, TransformerMixin\nclass Twice(BaseEstimator, TransformerMixin):\n    def __init__(self, times=2): self.times = times\n    def fit(self, X, y=None): return self\n    def transform(self, X): return X * self.times\nprint(Twice().fit_transform(np.ones((2, 1))), Twice(3).get_params())",
    "made data": "print(make_blobs(5, random_state=0)[1], make_regression(5, 2, random_state=0)[0].shape)",
    "named columns": "from sklearn.compose import ColumnTransformer; from sklearn.preprocessing import StandardScaler; print(ColumnTransformer([('s', StandardScaler(), [0])], verbose_feature_names_out='{transformer_name}:{feature_name}').fit(X).get_feature_names_out())",
    "a generator of its own": "from sklearn.utils import check_random_state; r = np.random.RandomState(3); r.seed(4); np.random.RandomState.seed(r, 4); print(r.rand(), check_random_state(5).rand(), check_random_state(r).rand())",
    "own classifier, checked": "from sklearn.base import BaseEstimator, ClassifierMixin\nfrom sklearn.utils.multiclass import unique_labels\nfrom sklearn.utils.validation import check_X_y, check_array, check_is_fitted\nfrom sklearn.model_selection import cross_val_score\nclass Nearest(ClassifierMixin, BaseEstimator):\n    def fit(self, X, y):\n        X, y = check_X_y(X, y)\n        self.classes_ = unique_labels(y)\n        self.centers_ = np.array([X[y == c].mean(0) for c in self.classes_])\n        return self\n    def predict(self, X):\n        check_is_fitted(self, 'centers_')\n        return self.classes_[((check_array(X)[:, None] - self.centers_) ** 2).sum(-1).argmin(1)]\nprint(cross_val_score(Nearest(), X, y, cv=3))\ntry: Nearest().fit(X, y[1:])\nexcept ValueError as e: print(e)",
    "validated data": "from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin\nfrom sklearn.utils.validation import validate_data\nclass Centred(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):\n    def fit(self, X, y=None):\n        self.mean_ = validate_data(self, X).mean(0)\n        return self\n    def transform(self, X): return validate_data(self, X, reset=False) - self.mean_\nc = Centred().fit(X)\nprint(c.n_features_in_, c.transform(X).mean().round(6), c.get_feature_names_out())\ntry: c.transform(X[:, :2])\nexcept ValueError as e: print(e)",
    "weights of classes": "from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight; print(compute_class_weight('balanced', classes=np.unique(y), y=y), compute_sample_weight({0: 2, 1: 1, 2: 1}, y)[:2])",
    "similar texts": "from sklearn.metrics.pairwise import cosine_similarity; from sklearn.feature_extraction.text import TfidfVectorizer; print(cosine_similarity(TfidfVectorizer().fit_transform(['a bc', 'bc de'])).round(3))",
    "imputing": "from sklearn.impute import SimpleImputer; from sklearn.compose import ColumnTransformer; print(ColumnTransformer([('i', SimpleImputer(), [0])]).fit_transform(np.array([[1.0], [np.nan]])))",
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_sklearn_prints_what_it_prints_natively(room, native, name):
    sandbox = room("sklearn", "numpy")

    assert sandbox.printed(START + EVERYDAY[name]) == native(START + EVERYDAY[name])


@pytest.mark.parametrize(
    "make",
    [
        "BallTree(X, metric=note).query(X[:2])",
        "NearestNeighbors(metric=note, algorithm='ball_tree').fit(X).kneighbors(X[:2])",
        "DistanceMetric.get_metric('pyfunc', func=note).pairwise(X[:3])",
        "type(DistanceMetric.get_metric('pyfunc', func=max)).get_metric('pyfunc', func=Note).pairwise(X[:3])",
    ],
)
def test_what_a_metric_is_given_is_not_memory_that_is_freed(room, make):
    source = f"""
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import BallTree, NearestNeighbors
kept = []
def note(a, b):
    kept.append(a)
    return float(abs(a - b).sum())
class Note:
    def __new__(cls, a, b): return note(a, b)
{make}
print({{a.flags.owndata for a in kept}})
"""

    assert room("sklearn", "numpy").printed(START + source) == "{True}\n"


def test_positions_of_support_vectors_are_copies(room):
    source = """
from sklearn.svm import SVC
m = SVC(kernel="precomputed").fit(X @ X.T, y)
before = m.predict(X @ X.T)
m.support_[:], m.n_support_[:] = 10**8, [10**8, -(10**8), 9]
print((m.predict(X @ X.T) == before).all())
"""

    assert room("sklearn", "numpy").printed(START + source) == "True\n"


HOSTILE = {
    "names that walk": "from sklearn.compose import ColumnTransformer\nfrom sklearn.preprocessing import StandardScaler\nclass S(str): pass\ns = S('a')\ns.x = np.pad\nColumnTransformer([(s, StandardScaler(), [0])], verbose_feature_names_out='{transformer_name.x.__globals__}').fit(X).get_feature_names_out()",
    "fetch": "from sklearn.datasets import fetch_california_housing",
    "load_files": "from sklearn.datasets import load_files",
    "svmlight": "from sklearn.datasets import load_svmlight_file",
    "dump_svmlight": "from sklearn.datasets import dump_svmlight_file",
    "clear_data_home": "from sklearn.datasets import clear_data_home",
    "set_config": "import sklearn; sklearn.set_config(skip_parameter_validation=True)",
    "joblib": "import joblib",
    "externals": "import sklearn.externals",
    "os": "import sklearn; sklearn.os",
    "os of a module": "import sklearn.datasets as d; d.os",
    "memory on disk": "from sklearn.pipeline import Pipeline; from sklearn.decomposition import PCA; Pipeline([('p', PCA(2)), ('q', PCA(1))], memory=TARGET).fit(X)",
    "text of a file": "from sklearn.feature_extraction.text import CountVectorizer; print(CountVectorizer(input='filename').fit([SECRET]).vocabulary_)",
    "graph to a file": "from sklearn.tree import DecisionTreeClassifier, export_graphviz; export_graphviz(DecisionTreeClassifier().fit(X, y), TARGET)",
    "positions in a tree": "from sklearn.neighbors import BallTree; print(BallTree(X).idx_array)",
    "a tree over the real one": "from sklearn.neighbors import BallTree\nclass B(BallTree): pass",
    "a metric by its class": "from sklearn.metrics import DistanceMetric; type(DistanceMetric.get_metric('pyfunc', func=max))(max)",
    "another kernel than the fitted one": "from sklearn.svm import SVC; SVC(kernel='precomputed').fit(X @ X.T, y).set_params(kernel='rbf').predict(X @ X.T)",
    "another kernel, in a pipeline": "from sklearn.svm import SVC; from sklearn.pipeline import Pipeline; Pipeline([('a', SVC(kernel='precomputed'))]).fit(X @ X.T, y).set_params(a__kernel='rbf').predict(X @ X.T)",
    "points beyond any tree": "from sklearn.manifold import TSNE; TSNE(init='random', learning_rate=1e300, early_exaggeration=1e30, perplexity=2).fit(X)",
    "nodes of a tree": "from sklearn.tree import DecisionTreeClassifier; DecisionTreeClassifier().fit(X, y).tree_.children_left[0] = 10**9",
    "positions of a sparse matrix": "from sklearn.feature_extraction.text import CountVectorizer; CountVectorizer().fit_transform(['ab cd']).indices[0] = 10**9",
    "arrays of a ball tree": "from sklearn.neighbors import KDTree; KDTree(X).get_arrays()",
    "workers": "import sklearn.pipeline as p; p.Parallel(2)",
    "patching": "from sklearn.svm import SVC; SVC.fit = None",
    "the generator of the process, through super": "from sklearn.utils import check_random_state\nclass R(np.random.RandomState):\n    def go(self): super(R, check_random_state(None)).seed(1)\nR().go()",
    "signatures, which evaluate text": "from sklearn.gaussian_process.kernels import signature",
    "settings for a block": "from sklearn.base import config_context",
    "settings beside distances": "from sklearn.metrics.pairwise import config_context",
    "the table of kernels": "from sklearn.metrics.pairwise import kernel_metrics; kernel_metrics()['linear'] = print",
    "the table of distances": "from sklearn.metrics.pairwise import distance_metrics; distance_metrics().clear()",
    "workers beside calibration": "from sklearn.calibration import Parallel",
    "columns of a fitted model": "from sklearn.tree import DecisionTreeClassifier\nfrom sklearn.utils.validation import validate_data\nm = DecisionTreeClassifier().fit(X, y)\nvalidate_data(m, X[:, :1])\nm.predict(X[:, :1])",
    "columns of a fitted model of one's own": "from sklearn.base import BaseEstimator\nfrom sklearn.tree import DecisionTreeClassifier\nfrom sklearn.utils.validation import validate_data\nclass T(DecisionTreeClassifier, BaseEstimator): pass\nm = T().fit(X, y)\nvalidate_data(m, X[:, :1])\nm.predict(X[:, :1])",
    "columns noted with a class": "from sklearn.base import BaseEstimator\nfrom sklearn.utils.validation import validate_data\nvalidate_data(BaseEstimator, X)",
    "signatures beside checks": "from sklearn.utils.validation import signature",
    "caches beside checks": "from sklearn.utils.validation import check_memory",
    "settings beside checks": "from sklearn.utils.validation import _get_config",
    "attribute of a fitted model": "from sklearn.svm import SVC; m = SVC().fit(X, y); m.support_ = np.array([10**9], dtype='i4')",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_sklearn_denies(room, name):
    assert room("sklearn", "numpy").refuses(START + HOSTILE[name])


class Vault:
    """Has a member that a registration leaves out, and a private one."""

    def __init__(self, token="the-secret"):
        self.token = token
        self._secret = np.array([7.0])


OF_ANY_OBJECT = {
    "a parameter that is left out": "from sklearn.gaussian_process.kernels import Kernel; Kernel.get_params(vault)",
    "a private name as a parameter of a kernel": "from sklearn.gaussian_process.kernels import Kernel\nclass D(Vault):\n    def __init__(self, _secret=None): super().__init__()\nKernel.get_params(D())",
    "a private name as a parameter": "from sklearn.base import BaseEstimator\nclass D(Vault, BaseEstimator):\n    def __init__(self, _secret=None): super().__init__()\nD().get_params()",
    "a private name that is set": "from sklearn.base import BaseEstimator\nclass D(Vault, BaseEstimator):\n    def __init__(self, _secret=None): pass\n    def get_params(self, deep=True): return {'_secret': 1}\nD().set_params(_secret=1)",
    "a path of names": "from sklearn.base import BaseEstimator\nfrom sklearn.feature_selection import SelectFromModel\nclass E(BaseEstimator):\n    def __init__(self, v=None): self.v = v\n    def fit(self, X, y=None): return self\nSelectFromModel(E(vault), importance_getter='v._secret').fit([[1.0]], [1]).get_support()",
    "a method by its name": "from sklearn.base import BaseEstimator\nfrom sklearn.metrics import make_scorer\nmake_scorer(lambda *_: 1.0, response_method=['__reduce_ex__'])(BaseEstimator(), 2, None)",
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ANY_OBJECT)
def test_a_name_in_a_text_is_read_as_guest_code_may(room, name):
    sandbox = room("sklearn", "numpy")
    sandbox.policy.cls(Vault, exclude=("_*", "token"))

    result = sandbox.run(OF_ANY_OBJECT[name], vault=Vault())

    assert isinstance(result.error, SandboxAttributeError)


def test_parameters_of_an_estimator_of_its_own_are_read_and_set(room):
    source = """
from sklearn.base import clone
from sklearn.feature_selection import RFE
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression
from sklearn.metrics import make_scorer
class Own(LinearRegression):
    def __init__(self, func=None, _mine=1):
        super().__init__()
        self.func, self._mine = func, _mine
print(clone(Own(func=len)).set_params(_mine=2).get_params(), RBF(2.0).set_params(length_scale=3.0).length_scale)
model = LinearRegression()
print(RFE(model, n_features_to_select=1, importance_getter="coef_").fit(X, y).support_)
scorer = make_scorer(lambda a, b: float(len(b)), response_method=["decision_function", "predict"])
print(scorer(model.fit(X, y), X, y))
"""
    printed = room("sklearn", "numpy").printed(START + source)

    assert printed.splitlines() == [
        "{'_mine': 2, 'func': <built-in function len>} 3.0",
        "[False False False  True]",
        "150.0",
    ]


def test_it_is_imported_beside_a_workspace():
    code = """
import sklearn
from agex.files import connect_fs
from agex.sandbox import Policy, Sandbox
policy = Policy.default()
policy.module(sklearn)
result = Sandbox(policy, fs=connect_fs()).exec("from sklearn.base import clone; print('here')")
print(result.error, result.stdout)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "here"]


def test_jobs_run_in_this_process(room):
    source = """
from sklearn.tree import DecisionTreeClassifier
from sklearn.model_selection import cross_val_score
seen = []
cross_val_score(DecisionTreeClassifier(), X, y, n_jobs=2, scoring=lambda *_: seen.append(1) or 1.0)
print(len(seen))
"""
    assert room("sklearn", "numpy").printed(START + source) == "5\n"

"""What draws without a generator of its own draws from the session's, as it draws from the process's elsewhere.

Stopped by: sandbox.libraries.numpy.random.
"""

import pytest

from agex.sandbox import Policy, Sandbox

np = pytest.importorskip("numpy", reason="the extra `test` has numpy")
pandas = pytest.importorskip("pandas", reason="the extra `test` has pandas")
sklearn = pytest.importorskip("sklearn", reason="the extra `test` has scikit-learn")
scipy = pytest.importorskip("scipy", reason="the extra `test` has scikit-learn, and scipy with it")

DRAWS = {
    "a sample of a frame": "pd.DataFrame({'a': range(100)}).sample(3).a.tolist()",
    "a split": "train_test_split(list(range(10)))",
    "a model": "RandomForestClassifier(3).fit([[i] for i in range(40)], [i * 7 % 3 for i in range(40)])"
    ".predict_proba([[i] for i in range(9)]).tolist()",
    "a distribution": "norm.rvs(size=3).tolist()",
    "one with parameters": "norm(1, 2).rvs(size=3).tolist()",
    "one of several variables": "multivariate_normal.rvs([0, 1]).tolist()",
    "one after another generator": "(norm.rvs(random_state=3), norm.rvs())",
    "numpy's own": "np.random.rand(3).tolist()",
}
SETUP = """
import numpy as np, pandas as pd
from scipy.stats import multivariate_normal, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
np.random.seed(5)
"""


def sandbox() -> Sandbox:
    policy = Policy.default()
    for module in (np, pandas, sklearn, scipy):
        policy.module(module)
    return Sandbox(policy)


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_seed_gives_what_it_gives_elsewhere(draw: str) -> None:
    before = np.random.get_state()
    result = sandbox().exec(SETUP + draw)
    assert result.error is None
    for was, now in zip(before, np.random.get_state(), strict=True):
        assert np.array_equal(was, now)

    names: dict[str, object] = {}
    try:
        exec(f"{SETUP}result = {draw}", names)
    finally:
        np.random.set_state(before)
    assert result.value == names["result"]


def test_sessions_of_one_policy_do_not_seed_each_other() -> None:
    both = sandbox()
    first, second = both.session(), both.session()
    assert first.run(SETUP).error is second.run(SETUP).error is None

    assert first.run("np.random.rand()").value == second.run("np.random.rand()").value


def test_the_generator_of_the_process_is_its_own_again_afterwards() -> None:
    from scipy.stats import norm

    assert sandbox().exec(SETUP + "norm.rvs(random_state=3)").error is None
    assert norm.random_state is np.random.mtrand._rand


def test_without_numpy_it_is_the_generator_of_the_process() -> None:
    policy = Policy.default()
    policy.module(pandas)
    assert len(Sandbox(policy).exec("import pandas as pd\npd.Series(range(9)).sample(3)").value) == 3


SEEDS = {
    "of the process": "check_random_state(None).seed(1)",
    "of a distribution": "scipy.stats.norm.random_state.seed(1)",
}
BY_ITS_CLASS = "import numpy as np\nnp.random.RandomState.seed(check_random_state(None), 1)"


@pytest.mark.parametrize("seeds", [*SEEDS.values(), BY_ITS_CLASS], ids=[*SEEDS, "off its class"])
def test_whoever_comes_by_a_generator_does_not_seed_the_one_of_the_process(seeds) -> None:
    policy = Policy.default()
    for module in (sklearn, scipy):
        policy.module(module)
    before = np.random.get_state()

    result = Sandbox(policy).exec(
        f"import scipy.stats\nfrom sklearn.utils import check_random_state\n{seeds}"
    )

    assert result.error is None  # numpy comes with them, with a generator of the session's own
    for was, now in zip(before, np.random.get_state(), strict=True):
        assert np.array_equal(was, now)

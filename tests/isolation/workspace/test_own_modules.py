"""A module of the workspace runs anew when its file changed, with those that depend on it, and not otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from directory_worker import Worker

from agex.files import connect_fs
from agex.isolation import executor_of
from agex.isolation.kernel import missing

WALLS = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold here: {missing()}")


@pytest.fixture
def files():
    made = connect_fs(type="virtual")
    made.write("rates.py", "runs = []\nruns.append(1)\nRATE = 2")
    made.write("prices.py", "from rates import RATE\nimport rates\ndef price(x): return x * RATE")
    made.write("shop/__init__.py", "")
    made.write("shop/till.py", "from prices import price\nTOTAL = price(10)")
    return made


@pytest.fixture(params=["process", pytest.param("kernel", marks=WALLS)])
def worker(request, files) -> Iterator[Worker]:
    with Worker(executor_of(request.param), files) as made:
        yield made


def test_a_module_that_the_host_changed_runs_anew_with_those_that_depend_on_it(worker, files):
    assert worker.run("from shop.till import TOTAL; import rates; print(TOTAL)") == "20\n"
    files.write("rates.py", "RATE = 33  # longer")
    assert worker.run("from shop.till import TOTAL; import rates; print(TOTAL, rates.RATE)") == "330 33\n"


def test_a_module_that_the_code_changed_runs_anew_in_its_next_action(worker):
    worker.run("import rates; open('rates.py', 'w').write('RATE = 44  # longer')")
    assert worker.run("import prices; print(prices.price(1))") == "44\n"


def test_a_module_whose_file_is_the_same_keeps_its_state(worker):
    worker.run("import rates; rates.runs.append(2); import json, decimal")
    assert worker.run("import rates; print(rates.runs)") == "[1, 2]\n"


def test_a_file_that_is_new_in_a_folder_that_was_looked_through_is_found(worker, files):
    worker.error("import taxes")
    worker.error("import shop.refunds")
    files.write("taxes.py", "TAX = 7")
    files.write("shop/refunds.py", "OPEN = True")
    assert worker.run("import taxes, shop.refunds as r; print(taxes.TAX, r.OPEN)") == "7 True\n"
    files.write("taxes.py", "TAX = 19  # longer")
    assert worker.run("import taxes; print(taxes.TAX)") == "19\n"


def test_a_module_in_a_folder_that_the_code_put_on_its_path_runs_anew(worker, files):
    files.write("lib/tools.py", "N = 1")
    worker.run("import sys; sys.path.append('/'.join([sys.path[0], 'lib'])); import tools")
    files.write("lib/tools.py", "N = 22  # longer")
    assert worker.run("import tools; print(tools.N)") == "22\n"


def test_a_module_that_is_gone_cannot_be_imported_again(worker, files):
    worker.run("import rates")
    files.remove("rates.py")
    assert "ModuleNotFoundError" in worker.error("import rates")


def test_code_that_empties_or_replaces_the_modules_goes_on(worker):
    worker.run("import sys, rates\nsys.modules['rates'] = object()\nsys.path_importer_cache.clear()")
    worker.run("import sys\nsys.modules['rates'] = None")
    assert worker.run("del sys.modules['rates']\nimport rates\nprint(rates.RATE)") == "2\n"

"""Comparing with every row gives the products, whichever thread computes them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from storage.search import compare
from tests.search.store import unit_rows


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_the_products_are_those_of_every_row(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(compare, "SHARED_ROWS", 5)
    rows, query = unit_rows(count), unit_rows(1, seed=1)[0]
    assert np.allclose(compare.cosines(rows, query), rows @ query, atol=1e-6)


def test_many_searches_at_once_get_their_own_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "SHARED_ROWS", 5)
    rows, queries = unit_rows(2000), unit_rows(64, seed=1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: compare.cosines(rows, query), queries))
    assert np.allclose(np.stack(found), queries @ rows.T, atol=1e-6)

"""Comparing with every row gives the products as exactly as is said, whichever thread computes them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from storage.search.vectors import exact_scan as compare
from tests.search.store import unit_rows


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_the_products_are_those_of_every_row(count: int) -> None:
    rows, query = unit_rows(count), unit_rows(1, seed=1)[0]
    codes, scales = compare.quantise_rows(rows)
    off = np.abs(compare.products(codes, scales, query) - rows @ query)
    assert (off <= compare.error_of(scales, query)).all()


def test_many_searches_at_once_get_their_own_products() -> None:
    rows, queries = unit_rows(2000), unit_rows(64, seed=1)
    codes, scales = compare.quantise_rows(rows)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: compare.products(codes, scales, query), queries))
    for query, own in zip(queries, found, strict=True):
        assert (np.abs(own - rows @ query) <= compare.error_of(scales, query)).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 101])
def test_halves_that_two_threads_compare_are_the_whole(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    chance = np.random.default_rng(3)
    codes, scales = compare.quantise_rows(chance.standard_normal((count, 8)).astype(np.float32))
    query = chance.standard_normal(8).astype(np.float32)
    alone = compare.products(codes, scales, query)
    monkeypatch.setattr(compare, "SHARED_ROWS", 1)
    assert np.array_equal(compare.products(codes, scales, query), alone)
    assert np.abs(alone - (codes * scales[:, None]) @ query).max(initial=0.0) < 0.05

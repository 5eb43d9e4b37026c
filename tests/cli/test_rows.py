from __future__ import annotations

import json

import pytest
from tests.cli.conftest import Borrador

from borrador.bench.row_cost import RowCosts
from borrador.cli import rows


def test_last_line_of_json_has_times_weights_and_bandwidth(borrador: Borrador, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = RowCosts(
        {1: 0.010, 8: 0.015}, weights_bytes=100_000_000, read_bandwidth=20e9, row_macs=150_000_000, integer_peak=100e9
    )
    monkeypatch.setattr(rows, "find_model", lambda *_, **__: None)
    monkeypatch.setattr(rows, "_measure", lambda *_: costs)
    result = borrador("rows", "--json")
    *table, last = result.out.splitlines()
    assert json.loads(last) == {
        "rows_ms": {"1": 10.0, "8": 15.0},
        "weights_bytes": 100_000_000,
        "read_bandwidth_bytes_s": 20_000_000_000,
        "row_macs": 150_000_000,
        "integer_peak_mac_s": 100_000_000_000,
        "limit_ms": {"1": 5.0, "8": 12.0},
    }
    assert ["8", "15.00", "1.50", "1.88", "12.00", "80%", "33%"] in [line.split() for line in table]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--repeats", "14"), "at least 15, got 14"),
        (("--context-tokens", "-1"), "from 0 to 16777184, got -1"),
        (("--context-tokens", "999999999"), "from 0 to 16777184, got 999999999"),
        (("--threads", "0"), "got 0"),
    ],
)
def test_bad_option_is_a_usage_error(borrador: Borrador, words: tuple[str, ...], named: str) -> None:
    result = borrador("rows", *words)
    assert (result.code, result.out) == (2, "")
    assert named in " ".join(result.err.split())

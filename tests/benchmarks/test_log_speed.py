"""The speed of corrections from a log of queries: the verb at tiny sizes."""

import numpy as np
import pytest

from benchmarks import log_speed, record
from benchmarks.__main__ import main


@pytest.mark.parametrize("device", ["cpu", pytest.param("cpu:0", marks=pytest.mark.torch)])
def test_log_speed_runs(device, tmp_path, capsys):
    assert main(["log-speed", "--quick", "--device", device, "--out", str(tmp_path)]) == 0
    assert "cosine HoldHubs: " in capsys.readouterr().out
    ((_, raw),) = record.read(tmp_path).items()
    assert set(raw["cases"]) == set(log_speed.METRICS)
    for case in raw["cases"].values():
        assert set(case["ratio"]) == set(log_speed.NAMES)
        assert all(len(rounds) == 2 for rounds in case["seconds"].values())


def test_data_are_unit_vectors_and_seeded():
    X = log_speed.unit_rows(30, 8, 1)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(X, log_speed.unit_rows(30, 8, 1))
    assert np.any(log_speed.unit_rows(30, 8, 2) != X)

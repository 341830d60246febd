"""What every store must do, written once, for hubless and for packages that add stores.

In a test module, with pytest:

    from hubless.testing.store_contract import Case, StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def case(self):
            return Case(make, ask, add)

`Case` says how such a store is made, searched and extended by its own client.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..neighbors.knn import unit
from ..repair.apply import apply_index, index_status, promote_index, rollback_index
from ..stores.store import StoreError
from .store_cases import Case as Case
from .store_cases import as_stored, exact, model_between, model_for, overlap, sample


class StoreContract:
    """The tests; a subclass has a fixture `case`."""

    @pytest.fixture
    def made(self, case: Case, tmp_path: Path) -> Any:
        """Return a store of 300 rows, with their ids, vectors, classes and texts."""
        ids, X, y, texts = sample(text_ids=case.text_ids)
        return case.make(tmp_path, ids, X, texts, "l2"), ids, X, y, texts

    @pytest.fixture
    def late(self, case: Case) -> Any:
        """Return the id of a row that is added later."""
        return np.array(["late"], dtype=object) if case.text_ids else np.array([10**6], dtype=np.int64)

    def test_facts_describe_it(self, case: Case, made: Any) -> None:
        """Shape, metric and columns are known without reading rows; nothing is marked as moved."""
        store, *_ = made
        facts = store.facts()
        assert store.exists()
        assert (facts.dimension, facts.count) == (8, 300)
        assert facts.metric in ("l2", None)
        assert store.mark() is None
        if case.has_texts:
            assert "text" in facts.columns

    def test_a_store_that_does_not_exist(self, case: Case, made: Any) -> None:
        """It does not exist, which is no error, and has no facts, which is one."""
        store, *_ = made
        missing = store.sibling("missing")
        assert not missing.exists()
        with pytest.raises(StoreError):
            missing.facts()

    def test_batches_give_every_row_once(self, case: Case, made: Any) -> None:
        """No batch is larger than was asked for; vectors are the very ones that were put in."""
        store, ids, X, _, texts = made
        columns = ("text",) if case.has_texts else ()
        got = {}
        for batch in store.batches(columns, size=77):
            assert len(batch.ids) == len(batch.vectors) <= 77
            for place, (i, vector) in enumerate(zip(batch.ids.tolist(), batch.vectors, strict=True)):
                assert i not in got
                got[i] = (vector, batch.columns["text"][place] if case.has_texts else None)
        assert set(got) == set(ids.tolist())
        for i, vector, text in zip(ids.tolist(), X, texts, strict=True):
            np.testing.assert_array_equal(got[i][0], vector)
            assert got[i][1] in (text, None)

    def test_fetch_gives_rows_in_the_requested_order(self, made: Any) -> None:
        """Ids that do not exist are left out."""
        store, ids, X, *_ = made
        wanted = [ids[7], ids[200], ids[3]]
        batch = store.fetch(wanted)
        assert batch.ids.tolist() == wanted
        np.testing.assert_array_equal(batch.vectors, X[[7, 200, 3]])
        missing = "no such" if isinstance(ids[0], str) else 10**9
        assert store.fetch([missing, ids[5]]).ids.tolist() == [ids[5]]
        assert store.contains(np.array([missing, ids[5]], dtype=ids.dtype)).tolist() == [False, True]

    def test_search_is_that_of_the_engine(self, case: Case, made: Any) -> None:
        """It finds as many of the true neighbours as its index promises."""
        store, ids, X, *_ = made
        queries = X[:20] + 0.1
        assert overlap(store.search(queries, 5), exact(ids, X, queries, 5, "l2")) >= case.recall

    def test_apply_promote_and_rollback(self, case: Case, tmp_path: Path) -> None:
        """The served name answers as before, then with moved rows, then as before again."""
        for number, metric in enumerate(case.metrics):
            ids, X, y, texts = sample(text_ids=case.text_ids)
            folder = tmp_path / str(number)
            folder.mkdir()
            X = unit(X) if metric == "ip" else X
            store = case.make(folder, ids, X, texts, metric)
            model = model_for(X, y, metric)
            queries = unit(X[:20] + 0.1) if metric != "l2" else X[:20] + 0.1
            served = store.name
            before = case.ask(store, queries, 5)
            assert overlap(before, exact(ids, X, queries, 5, metric)) >= case.recall
            report = apply_index(model, store, case.green)
            assert report["written"] == 300
            assert overlap(case.ask(store, queries, 5), before) == 1.0  # blue serves, untouched
            assert apply_index(model, store, case.green)["written"] == 0  # nothing is done twice
            promote_index(store, case.green)
            after = case.ask(store, queries, 5)
            moved = exact(ids, model.move(X), queries, 5, metric)
            assert overlap(after, moved) >= case.recall
            assert overlap(before, moved) < 1  # so the line above can fail
            again = store.sibling(served)
            assert again.mark().model == model.hash
            with pytest.raises(StoreError, match="already moved"):
                apply_index(model, again, case.green + "2")
            if case.has_texts:
                kept = again.fetch([ids[9]], ["text"])
                assert kept.columns["text"] == [texts[9]]
            rollback_index(again)
            assert overlap(case.ask(again, queries, 5), before) == 1.0
            restored = store.sibling(served).fetch([ids[9]]).vectors
            # an engine that brings vectors to length 1 rounds their last bit; others return what was put in
            rounding = 1e-6 if getattr(again, "keeps_unit", False) else case.rounding
            np.testing.assert_allclose(restored, as_stored(X[[9]], again), rtol=rounding)

    def test_rows_added_while_it_served_are_never_lost(self, case: Case, made: Any, late: Any) -> None:
        """They are in the moved store alone: a rollback reports them, and no later apply removes them."""
        store, _, X, y, _ = made
        if case.add is None:  # no row is added to a file: it is replaced
            return
        model, served = model_for(X, y, "l2"), store.name
        apply_index(model, store, case.green)
        promote_index(store, case.green)
        case.add(store.sibling(served), late, X[:1] + 1, ["late one"])
        report = rollback_index(store.sibling(served))
        assert report["added_since"] == 1
        kept = store.sibling(report["moved_kept_as"])
        assert kept.contains(late).tolist() == [True]
        with suppress(StoreError):  # refused where the moved store is the one that would be built over
            apply_index(model, store.sibling(served), case.green)
        assert kept.contains(late).tolist() == [True]

    def test_rows_without_a_vector_have_none_after_the_move(
        self, case: Case, tmp_path: Path, late: Any
    ) -> None:
        """They keep their other columns, and are not written again."""
        ids, X, y, texts = sample(text_ids=case.text_ids)
        model = model_for(X, y, "l2")
        X[[0, 7, 8, 299]] = np.nan
        if not case.may_lack_vectors:
            return
        store = case.make(tmp_path, ids, X, texts, "l2")
        if not store.may_lack_vectors:
            return
        served = store.name
        assert apply_index(model, store, case.green)["written"] == 300
        assert apply_index(model, store, case.green)["written"] == 0  # nothing is done twice
        if case.add is not None:
            case.add(store, late, X[:1], ["late one"])
            assert apply_index(model, store, case.green)["written"] == 1
            ids, X = np.concatenate([ids, late]), np.concatenate([X, X[:1]])
        moved = np.where(np.isnan(X), np.nan, model.move(np.nan_to_num(X)))
        promote_index(store, case.green)
        again = store.sibling(served)
        batch = again.fetch(ids.tolist(), ["text"] if case.has_texts else [])
        assert batch.ids.tolist() == ids.tolist()
        np.testing.assert_allclose(batch.vectors, moved, rtol=1e-5, atol=1e-6)
        assert not case.has_texts or batch.columns["text"][:300] == texts
        rollback_index(again)
        np.testing.assert_array_equal(store.sibling(served).fetch(ids.tolist()).vectors, X)

    def test_a_name_that_is_taken_is_refused(self, case: Case, made: Any) -> None:
        """A copy that another model made is not written over."""
        store, _, X, y, _ = made
        apply_index(model_for(X, y, "l2"), store, case.green)
        other = model_for(X[:100], y[:100], "l2")
        with pytest.raises(StoreError):
            apply_index(other, store, case.green)

    def test_green_must_be_done_before_it_serves(self, case: Case, made: Any) -> None:
        """Nothing is promoted or rolled back that is not there."""
        store, *_ = made
        with pytest.raises(StoreError):
            promote_index(store, case.green)
        with pytest.raises(StoreError):
            rollback_index(store)

    def test_rows_that_come_late_are_moved_or_reported(self, case: Case, made: Any, late: Any) -> None:
        """A change after `apply` is noticed by `promote`, and moved by another `apply`."""
        store, _, X, y, _ = made
        if case.add is None:  # no row is added to a file: it is replaced
            return
        model = model_for(X, y, "l2")
        apply_index(model, store, case.green)
        case.add(store, late, X[:1] + 1, ["late one"])
        with pytest.raises(StoreError, match="changed"):
            promote_index(store, case.green)
        assert apply_index(model, store, case.green)["written"] == 1
        promote_index(store, case.green)
        again = store.sibling(store.name)
        np.testing.assert_allclose(
            again.fetch(list(late)).vectors, model.move(X[:1] + 1), rtol=1e-5, atol=1e-6
        )
        assert sum(len(batch.ids) for batch in again.batches()) == 301

    @pytest.mark.parametrize("width", [11, 5])
    def test_moved_vectors_of_another_width(self, case: Case, tmp_path: Path, late: Any, width: int) -> None:
        """The copy has the width of the queries, and the way back restores the old one."""
        metric = case.metrics[0 if width > 8 else -1]
        ids, X, _, texts = sample(text_ids=case.text_ids)
        X = unit(X) if metric == "ip" else X
        store = case.make(tmp_path, ids, X, texts, metric)
        model, queries = model_between(X, width, metric)
        narrow, queries, served = unit(X[:9]), queries[:20], store.name
        before = case.ask(store, narrow, 5)
        assert apply_index(model, store, case.green)["written"] == 300
        assert apply_index(model, store, case.green)["written"] == 0  # nothing is done twice
        assert overlap(case.ask(store, narrow, 5), before) == 1.0  # blue serves, untouched
        if case.add is not None:
            case.add(store, late, -X[:1], ["late one"])
            with pytest.raises(StoreError, match="changed"):
                promote_index(store, case.green)
            assert apply_index(model, store, case.green)["written"] == 1
            ids, X = np.concatenate([ids, late]), np.concatenate([X, -X[:1]])
        promote_index(store, case.green)
        again = store.sibling(served)
        status = index_status(again)
        assert (status["dimension"], status["count"]) == (width, len(ids))
        moved = model.move(X)
        assert moved.shape == (len(ids), width)
        assert overlap(case.ask(again, queries, 5), exact(ids, moved, queries, 5, metric)) >= case.recall
        kept = again.fetch([ids[9]], ["text"] if case.has_texts else [])
        np.testing.assert_allclose(kept.vectors, moved[[9]], rtol=1e-5, atol=1e-6)
        assert kept.columns == ({"text": [texts[9]]} if case.has_texts else {})
        rollback_index(again)
        original = store.sibling(served)
        assert (original.facts().dimension, original.facts().count) == (8, len(ids))
        assert overlap(case.ask(original, narrow, 5), before) == 1.0
        apply_index(model, original, case.green)  # what was kept is used again, where that has this name
        promote_index(original, case.green)
        assert store.sibling(served).facts().dimension == width

    def test_an_interrupted_copy_of_another_width_is_resumed(
        self, case: Case, made: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Running it again completes what was begun."""
        store, ids, X, *_ = made
        model, _ = model_between(X, 11, "l2")
        write, n_written = type(store).write, 0

        def write_half(green: Any, batch: Any, moved: np.ndarray) -> None:
            nonlocal n_written
            n_written = len(moved) // 2
            half = np.arange(len(moved)) < n_written
            write(green, batch.take(half), moved[half])
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(type(store), "write", write_half)
            with pytest.raises(KeyboardInterrupt):
                apply_index(model, store, case.green)
        again = store.sibling(store.name)
        written = apply_index(model, again, case.green)["written"]
        assert written == len(ids) - (
            0 if case.add is None else n_written
        )  # a file is written from the start
        green = again.sibling(case.green)
        np.testing.assert_allclose(green.fetch(ids.tolist()).vectors, model.move(X), rtol=1e-5, atol=1e-6)

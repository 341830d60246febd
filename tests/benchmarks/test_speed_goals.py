"""The goals of speed, judged on hand-made raw results."""

from benchmarks import markdown, speed_goals


def measured(**verbs):
    return {verb: {"cases": cases} for verb, cases in verbs.items()}


def verdicts(raw):
    return {(goal.what, goal.wanted): (goal.reached, goal.holds) for goal in speed_goals.goals(raw)}


def test_nothing_is_claimed_without_a_measurement():
    assert {goal.holds for goal in speed_goals.goals({})} == {None}
    looked = measured(memory={"predict": {"bytes": {"hubless": {"beyond": 1}}}})
    looked["memory"]["settings"] = {"quick": True}
    assert {goal.holds for goal in speed_goals.goals(looked)} == {None}


def test_goals_of_search():
    shape = speed_goals.SHAPES[0]
    seconds = {"bare product": [1.0, 1.0], "hubless": [0.5, 0.6], "hubless, float32": [1.2, 1.4]}
    seconds["faiss IndexFlatL2"] = {"error": "ModuleNotFoundError: No module named 'faiss'"}
    agreements = {"scikit-learn brute": {"same_rows": 0.999, "largest_difference": 1e-3, "nearer": 0.0}}
    judged = verdicts(measured(search={shape: {"seconds": seconds, "neighbors": agreements}}))
    what = f"search, {shape}"
    assert judged[what, "at most 0.6 × bare product"] == ("0.55 × (quartiles 0.525 to 0.575)", True)
    assert judged[f"search without bfloat16, {shape}", "at most 1.15 × bare product"][1] is False
    assert judged[what, "at least 1.6 × faster than faiss IndexFlatL2"] == (
        "not measured: ModuleNotFoundError: No module named 'faiss'",
        None,
    )
    assert judged[what, "the neighbours of scikit-learn brute"][1] is False


def test_the_goal_of_folding_is_that_of_its_fastest_form():
    seconds = {"bare product": [1.0], "folding, 64 columns": [0.9], "folding, 96 columns": [0.7]}
    seconds["folding, 128 columns"] = {"error": "ValueError: the bound leaves too many objects"}
    raw = measured(folding={speed_goals.FOLDED: {"seconds": seconds}})
    raw["folding"]["date"] = "2026-11-19T21:00:00"
    (goal,) = (goal for goal in speed_goals.goals(raw) if "folding" in goal.what)
    assert (goal.wanted, goal.holds, goal.measured) == ("at most 0.8 × bare product", True, "2026-11-19")
    seconds["folding, 96 columns"] = [0.85]
    (goal,) = (goal for goal in speed_goals.goals(raw) if "folding" in goal.what)
    assert goal.holds is False


def test_fit_is_held_to_the_bare_products():
    judged = verdicts(measured(fit={"news": {"seconds": {"hubless": [1.1], "bare products": [1.0]}}}))
    assert judged["fit and move, News", "at most 1 × bare products"][1] is False


def test_a_limit_is_a_lower_bound():
    seconds = {"hubless": [0.2], "bare products": [0.1]}
    rivals = {"hubless LMNN": {"seconds": [100.0]}, "metric-learn LMNN": {"more_than": 600}}
    judged = verdicts(measured(fit={"news": {"seconds": seconds, "learners": rivals}}))
    ours, other = (f"at least 1,000 × faster than {who} LMNN" for who in ("our", "metric-learn's"))
    assert judged["fit and move, News", ours] == ("500 ×", False)
    assert judged["fit and move, News", other] == ("more than 3,000 ×", True)
    rivals["metric-learn LMNN"] = {"more_than": 100}  # it might have taken longer
    judged = verdicts(measured(fit={"news": {"seconds": seconds, "learners": rivals}}))
    assert judged["fit and move, News", other] == ("more than 500 ×", None)


def test_goals_of_growth_memory_start_and_gpu():
    lines = {
        "fit by n": {"exponent": 0.93, "standard_error": 0.01, "last_exponent": 1.04},
        "fit by d": {"exponent": 1.5, "standard_error": 0.1, "last_exponent": 2.2},
    }
    gpu = {
        "imagenet fit and move": {"tf32": [0.3, 0.2, 0.24], "float32": [0.8]},
        "imagenet search": {"float32": [0.1]},
    }
    memory = {"predict": {"bytes": {"hubless": {"beyond": 230_700_000}}}}
    starts = {"python": [0.01], "hubless --help": [0.2, 0.1], "hubless fit --help": [0.26]}
    start = {"startup": {"seconds": starts}}
    judged = verdicts(measured(growth=lines, memory=memory, gpu=gpu, startup=start))
    what = "start of `hubless --help` and every `VERB --help`"
    assert judged[what, "at most 0.3 s of processor time"] == ("0.26 s (`hubless fit --help`)", True)
    start["startup"]["seconds"]["hubless fit --help"] = [0.31]
    assert verdicts(measured(startup=start))[what, "at most 0.3 s of processor time"][1] is False
    assert judged["growth of fit with n", "an exponent of about 1.1 at most"][1] is True
    assert judged["growth of fit with d", "an exponent of about 2.1 at most"][1] is False
    assert judged["memory of predict", "at most 231 MB beyond input and output"] == ("231 MB", True)
    assert judged["GPU, imagenet fit and move, tf32", "at most 0.2000 s"] == ("0.2400 s", False)
    assert judged["GPU, imagenet search, float32", "at most 0.1100 s"] == ("0.1000 s", True)
    assert judged["GPU, news fit, float32", "at most 0.0030 s"] == (markdown.MISSING, None)

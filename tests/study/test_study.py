"""What a study may say, and what is refused before anything runs."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant.errors import FormatError, PliantError
from pliant.study import read
from pliant.study.parameters import case_seed

K = {"stiffness": "*", "values": [1.0, 2.0]}
F = {"frequencies": 1}
LADDER = {"mechanism": "gallery:ladder", "outputs": {"f": F}}


def test_a_grid_times_samples(make):
    study = make(
        parameters={
            "a": {"stiffness": "*", "log": [1, 100, 3]},
            "b": {"damping": "*", "values": [0.1, 0.2]},
            "c": {"stiffness": "*", "uniform": [1, 2], "relative": True},
            "d": {"normal": [5.0, 1.0]},
            "e": {"loguniform": [1, 1000]},
        },
        samples=64,
        sampling="sobol",
        outputs={"y": {"function": "functions_of_study:square"}},
    )
    assert len(study) == 3 * 2 * 64
    assert study.design.shape == (3, 2, 64)
    rows = np.array([study.design[i] for i in range(len(study))])
    assert np.allclose(np.unique(rows[:, 0]), [1, 10, 100])
    assert (rows[:64, :2] == [1, 0.1]).all()
    assert (rows[:64, 2:] == rows[64:128, 2:]).all()  # the same samples everywhere
    first = rows[:64]
    assert 1 <= first[:, 2].min() < 1.05 < 1.95 < first[:, 2].max() <= 2
    assert first[:, 3].mean() == pytest.approx(5, abs=0.1)
    assert first[:, 3].std() == pytest.approx(1, abs=0.1)
    assert np.median(np.log10(first[:, 4])) == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize("sampling", ["random", "latin", "sobol"])
def test_a_seed_is_all_there_is_to_chance(make, sampling):
    def samples(seed):
        given = {"k": {"stiffness": "*", "uniform": [1, 2]}}
        return make(
            parameters=given, outputs={"f": F}, samples=10, sampling=sampling, seed=seed
        ).design.samples

    assert (samples(1) == samples(1)).all()
    assert (samples(1) != samples(2)).all()
    if sampling == "latin":
        assert sorted(np.floor(10 * (samples(3)[:, 0] - 1))) == list(range(10))


def test_seeds_of_cases():
    seeds = {case_seed(s, i) for s in (0, 1) for i in range(1000)}
    assert len(seeds) == 2000
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert case_seed(0, 0) == case_seed(0, 0)


def test_whole_numbers_stay_whole(make):
    study = make(**{**LADDER, "parameters": {"n": {"argument": "rungs", "linear": [2, 6, 3]}}})
    assert [study.design[i] for i in range(3)] == [(2,), (4,), (6,)]
    mixed = make(**{**LADDER, "parameters": {"k": {"stiffness": "*", "values": [1, 2.5]}}})
    assert [type(v) for v in mixed.design[0]] == [float]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"mechanism": "gallery:lader"}, "the gallery has no 'lader'; did you mean 'ladder'"),
        ({"mechanism": "nowhere.xml"}, "there is no such file"),
        ({"mechanism": 3}, "mechanism: a file, 'gallery:NAME' or a Mechanism expected"),
        ({"parameters": {}}, "parameters: at least one expected"),
        (
            {"parameters": {"k": {"stifness": "*", "values": [1]}}},
            "unknown key 'stifness'; did you mean 'stiffness'",
        ),
        ({"parameters": {"k": {"stiffness": "*"}}}, "parameter 'k': its values are missing"),
        ({"parameters": {"k": {"stiffness": "*", "values": []}}}, "parameter 'k': values: a list expected"),
        ({"parameters": {"k": {**K, "linear": [1, 2, 3]}}}, "both 'values' and 'linear' are given"),
        ({"parameters": {"k": {**K, "damping": "*"}}}, "both 'stiffness' and 'damping' are given"),
        ({"parameters": {"k": {"stiffness": "*", "values": [1, "a"]}}}, "not a mixture"),
        ({"parameters": {"k": {"stiffness": "*", "values": [1, 1]}}}, "a value is given twice"),
        ({"parameters": {"k": {"stiffness": "*", "values": [[1], [1]]}}}, "values: a finite number expected"),
        ({"parameters": {"k": {"stiffness": "*", "linear": {1: 1, 2: 2, 3: 3}}}}, r"\[first, last, count\]"),
        ({"parameters": {"k": {"stiffness": "*", "linear": [0, 10**400, 3]}}}, "linear: a finite number"),
        ({"parameters": {"k": {"stiffness": "*", "values": ["a"]}}}, "stiffness takes numbers"),
        ({"parameters": {"k": {"stiffness": "*", "values": [float("nan")]}}}, "a finite number expected"),
        ({"parameters": {"k": {"stiffness": "*", "log": [0, 1, 3]}}}, "a number above 0 expected"),
        ({"parameters": {"k": {"stiffness": "*", "linear": [0, 1]}}}, r"\[first, last, count\] expected"),
        ({"parameters": {"k": {"stiffness": "*", "uniform": [2, 1]}}}, r"\[lowest, highest\] expected"),
        ({"parameters": {"k": {"stiffness": "*", "normal": [2, 0]}}}, "the latter above 0"),
        ({"parameters": {"k": {"stiffness": "*", "uniform": [1, 2]}}}, "say how often, as in samples"),
        ({"samples": 10}, "no parameter is drawn"),
        (
            {"parameters": {"k": {"stiffness": "post_*", "values": [1]}}},
            "parameter 'k': no joint of 'ladder 12",
        ),
        ({"parameters": {"k": {"values": [1]}}}, "parameter 'k' changes nothing"),
        (
            {"parameters": {"k": {"argument": "rung", "values": [4]}}},
            "parameter 'k': gallery:ladder has no argument 'rung'; did you mean 'rungs'",
        ),
        (
            {"mechanism": "gallery:ladder:4", "parameters": {"n": {"argument": "rungs", "values": [4]}}},
            "the argument 'rungs' is fixed",
        ),
        ({"parameters": {"k": {"argument": "rungs", "values": [-1]}}}, "the mechanism of the first case"),
        ({"parameters": {"seed": K}}, "'seed' is a column of every table"),
        ({"parameters": {"a b": K}}, "letters, digits and underscores expected"),
        ({"outputs": {}}, "outputs: at least one expected"),
        ({"outputs": {"k": F}}, "output 'k': a parameter has that name"),
        (
            {"outputs": {"f": {"frequncies": 1}}},
            "'frequncies' is nothing to compute; did you mean 'frequencies'",
        ),
        ({"outputs": {"f": {**F, "compliance": "top"}}}, "output 'f': one thing to compute expected"),
        ({"outputs": {"f": {**F, "entries": ["x.x"]}}}, "output 'f': unknown key 'entries'"),
        ({"outputs": {"f": {"frequencies": 0}}}, "a whole number from 1 to 1000 expected"),
        ({"outputs": {"c": {"compliance": "nobody"}}}, "output 'c': .*nobody"),
        (
            {"outputs": {"c": {"compliance": "rung12", "entries": ["x.q"]}}},
            "entries: unknown 'x.q'; did you mean",
        ),
        ({"outputs": {"d": {"displacement": "rung12"}}}, "output 'd': say what acts"),
        (
            {"outputs": {"d": {"displacement": "rung12", "wrench": {"rung12": [0, 0, "kk"]}}}},
            "no parameter 'kk'; did you mean 'k'|no parameter 'kk'; there are 'k'",
        ),
        ({"outputs": {"y": {"function": "functions_of_study"}}}, "'module:function' expected"),
        ({"outputs": {"y": {"function": "no_such_module:f"}}}, "cannot be imported"),
        (
            {"outputs": {"y": {"function": "functions_of_study:sqare"}}},
            "no function 'sqare'; did you mean 'square'",
        ),
        ({"outputs": {"y": {"function": "functions_of_study:three_too_many"}}}, "must take the mechanism"),
        ({"outputs": {"y": lambda m, p: 1.0}}, "at the top level of a module"),
        ({"outputs": {"f": {**F, "goal": "best"}}}, "goal: unknown 'best'"),
        ({"results": "table.csv"}, "a name that ends in .parquet expected"),
        ({"sampling": "sobl"}, "sampling: unknown 'sobl'; did you mean 'sobol'"),
        ({"time_limit": 0}, "time_limit: a number above 0 expected"),
        ({"seed": -1}, "seed: a whole number from 0 expected"),
    ],
)
def test_mistakes_are_refused(make, folder, change, says):
    with pytest.raises(PliantError, match=says) as caught:
        make(**{**LADDER, "parameters": {"k": K}, **change})
    assert "\n" not in str(caught.value)
    assert not list(folder.glob("*.parquet*"))


def test_a_file(folder, robot_text):
    (folder / "robot.xml").write_text(robot_text)
    (folder / "deep").mkdir()
    file = folder / "deep" / "study.toml"
    file.write_text(
        'mechanism = "../robot.xml"\nseed = 3\n[parameters.k]\nstiffness = "elbow"\nvalues = [1, 2]\n'
        '[outputs.c]\ncompliance = "tip"\nentries = "y.y"\n'
    )
    study = read(file)
    assert study.results == folder / "deep" / "study.parquet"
    assert read(file, "here.parquet").results == folder / "here.parquet"
    results = study.run(workers=0)
    assert results.columns["c"] == pytest.approx([0.2**2 / 1, 0.2**2 / 2], abs=1)
    assert results.table["k"].tolist() == [1, 2]


@pytest.fixture
def robot_text():
    return """<mujoco model="robot"><worldbody>
      <body name="arm"><joint name="shoulder" axis="0 1 0" stiffness="20" damping=".1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
        <body name="tip" pos=".3 0 0"><joint name="elbow" axis="0 0 1" stiffness="10" damping=".1"/>
          <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></body>
    </worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mechanism = ", "is not TOML"),
        ("seeds = 3", "unknown key 'seeds'; did you mean 'seed'"),
        ('mechanism = "gallery:hand"', "'parameters' is missing"),
    ],
)
def test_files_that_are_refused(folder, text, says):
    (folder / "bad.toml").write_text(text)
    with pytest.raises(PliantError, match=says):
        read("bad.toml")
    with pytest.raises(FormatError, match="there is no such file"):
        read("other.toml")


SCRIPT = """
from pliant.study import Study

def stiff(mechanism, parameters):
    return mechanism.stiffness[0]

study = Study("gallery:two_link", {"k": {"stiffness": "*", "values": [3.0, 4.0]}}, {"s": stiff}, "one.parquet")
"""


def test_a_python_file(folder):
    (folder / "study_in_python.py").write_text(SCRIPT)
    study = read("study_in_python.py", "other.parquet")
    assert study.results == folder / "other.parquet"
    assert study.run(workers=0).columns["s"].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("no_study", "x = 1", "one study expected at its top level, as in study = Study.*, not 0"),
        ("two_studies", SCRIPT + SCRIPT.replace("study =", "other ="), "not 2"),
        ("broken_study", "x =", "cannot be imported: SyntaxError"),
        ("json", SCRIPT, "another module is called 'json'; rename the file"),
        ("bad_study", SCRIPT.replace('"stiffness"', '"stifness"'), "did you mean 'stiffness'"),
    ],
)
def test_python_files_that_are_refused(folder, name, text, says):
    (folder / f"{name}.py").write_text(text)
    with pytest.raises(PliantError, match=says):
        read(f"{name}.py")
    with pytest.raises(FormatError, match="there is no such file"):
        read("missing.py")


def test_a_minus_before_a_parameter(make):
    one = make(
        mechanism="gallery:flexure_stage",
        parameters={"push": [2.0]},
        outputs={
            name: {"displacement": "stage", "components": "x", "wrench": {"stage": [word, 0, 0]}}
            for name, word in (("a", "push"), ("b", "-push"))
        },
    ).run(workers=0)
    assert one.columns["a"][0] > 1e-4
    assert one.columns["b"][0] == pytest.approx(-one.columns["a"][0], rel=1e-9)


def test_what_outputs_are(make):
    """Every kind, against plain calls."""
    m = pliant.gallery.flexure_stage()
    stage = m.end_effectors[0]
    results = make(
        mechanism=m,
        parameters={"k": {"stiffness": "*", "values": [1.0, 2.0], "relative": True}, "push": [1.0, 2.0]},
        outputs={
            "c": {"compliance": stage},
            "p": {"principal": stage},
            "r": {"principal": stage, "of": "rotation"},
            "d": {"displacement": stage, "components": ["x", "distance"], "wrench": {stage: ["push", 0, 0]}},
            "bent": {"frequencies": 1, "wrench": {stage: ["push", 0, 0]}},
            "sag": {"displacement": stage, "gravity": True},
            "kept": {"energy": 0.1, "wrench": {stage: [1, 0, 0]}},
        },
    ).run(workers=0)
    assert results.errors == {}
    assert list(results.outputs[:6]) == ["c.x.x", "c.y.y", "c.z.z", "c.rx.rx", "c.ry.ry", "c.rz.rz"]
    column = results.columns
    assert column["k"].tolist() == [1, 1, 2, 2]
    compliance = pliant.Configuration(m).compliance(stage)
    assert column["c.x.x"] == pytest.approx(compliance[0, 0] / column["k"])
    assert column["p.1"] == pytest.approx(column["c.x.x"])  # it gives way along x alone
    at = pliant.equilibrium(m, {stage: (2, 0, 0)})
    assert column["d.distance"][1] == pytest.approx(at.displacement[m.body_index(stage)])
    assert column["bent"][1] == pytest.approx(at.frequencies(1)[0])
    assert ((column["kept"] > 0) & (column["kept"] < 0.1)).all()  # its dampers are quick
    assert (column["sag"] >= 0).all()

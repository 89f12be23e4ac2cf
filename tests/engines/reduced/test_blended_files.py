"""Files of blends: round trips without loss; damaged or foreign files are refused."""

import io
import json
import zipfile

import numpy as np
import pytest

import pliant
from pliant.engines.reduced import files
from pliant.errors import FormatError

TIP = "link12"
FORCES = [(0, 0, -40), (0, 0, 40), (40, 0, 0), (-40, 0, 0), (0, 40, 0), (0, -40, 0)]


@pytest.fixture(scope="module")
def models():
    m = pliant.gallery.helix(12)
    return [pliant.reduce(m), *(pliant.reduce(m, at=pliant.equilibrium(m, {TIP: f})) for f in FORCES)]


@pytest.mark.parametrize(
    "style",
    [{}, {"exponent": 2.0, "distance": "twist", "matrices": "eigen"}],
    ids=["linear", "eigen"],
)
def test_round_trip(models, style, tmp_path):
    given = pliant.blend(models, **style)
    given.save(tmp_path / "blend.npz")
    back = pliant.BlendedModel.load(tmp_path / "blend.npz")
    assert (back.exponent, back.distance, back.matrices) == (given.exponent, given.distance, given.matrices)
    for a, b in zip(given.models, back.models, strict=True):
        for name in files._ARRAYS:
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert all(model.mechanism is back.mechanism for model in back.models)  # written and read once
    load = {TIP: (10.0, -20.0, 15.0)}
    assert np.array_equal(back.weights(load), given.weights(load))
    assert np.array_equal(back.configuration(load).poses, given.configuration(load).poses)
    for method in ("auto", "tvcg"):
        poses = []
        for model in (given, back):
            simulation = pliant.ReducedSimulation(model, 0.01, method=method)
            simulation.apply_wrench(TIP, (0, 0, -30.0))
            simulation.step(20)
            poses.append(simulation.poses)
        assert np.array_equal(*poses)
    assert [f.name for f in tmp_path.iterdir()] == ["blend.npz"]


def test_a_floating_base(tmp_path):
    m = pliant.gallery.hexapod()
    given = pliant.blend([pliant.reduce(m)])
    given.save(tmp_path / "blend.npz")
    back = pliant.BlendedModel.load(tmp_path / "blend.npz")
    assert given.base is not None
    assert back.base is not None
    assert back.base.body == given.base.body
    assert np.array_equal(back.base.inertia, given.base.inertia)


def test_mechanisms_that_differ_are_both_kept(tmp_path):
    """Models of a blend may have different mechanisms with the same names."""
    m = pliant.gallery.helix(5)
    stiff = m.replace(stiffness=2 * m.stiffness)
    loaded = pliant.reduce(stiff, at=pliant.equilibrium(stiff, {"link5": (0, 0, -5)}))
    pliant.blend([pliant.reduce(m), loaded]).save(tmp_path / "blend.npz")
    first, second = pliant.BlendedModel.load(tmp_path / "blend.npz").models
    assert np.array_equal(second.mechanism.stiffness, 2 * first.mechanism.stiffness)


def test_either_kind_is_found(models, tmp_path):
    models[0].save(tmp_path / "single.npz")
    pliant.blend(models).save(tmp_path / "blend.npz")
    assert isinstance(files.load_model(tmp_path / "single.npz"), pliant.ReducedModel)
    assert isinstance(files.load_model(tmp_path / "blend.npz"), pliant.BlendedModel)
    with pytest.raises(FormatError, match=r"holds no reduced model.*BlendedModel\.load"):
        pliant.ReducedModel.load(tmp_path / "blend.npz")
    with pytest.raises(FormatError, match="holds no blended model"):
        pliant.BlendedModel.load(tmp_path / "single.npz")


# --- refused files


def as_npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def about(entries, change):
    said = json.loads(np.load(io.BytesIO(entries["about.npy"])).tobytes())
    change(said)
    entries["about.npy"] = as_npy(np.frombuffer(json.dumps(said).encode(), dtype=np.uint8))


CHANGES = {
    "newer": (lambda e: about(e, lambda a: a.update(version=2)), "newer pliant"),
    "models": (lambda e: about(e, lambda a: a.update(models="many")), "a list expected"),
    "none": (lambda e: about(e, lambda a: a.update(models=[])), "at least one model"),
    "exponent": (lambda e: about(e, lambda a: a.update(exponent=-1.0)), "exponent"),
    "distance": (lambda e: about(e, lambda a: a.update(distance="far")), "distance is"),
    "number": (lambda e: about(e, lambda a: a["models"][1].update(mechanism=99)), "number of a mechanism"),
    "effectors": (lambda e: about(e, lambda a: a["models"][1].update(end_effectors=["link3"])), "others"),
    "twice": (lambda e: e.update({"model1.wrench.npy": e["model2.wrench.npy"]}), "the same wrenches"),
    "missing": (lambda e: e.pop("model1.basis.npy"), "'basis' is missing"),
    "mechanism": (lambda e: e.pop("mechanism0.npy"), "'mechanism0' is missing"),
}


@pytest.fixture(scope="module")
def good(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "blend.npz"
    pliant.blend(models).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("name", CHANGES)
def test_refused(good, name, tmp_path):
    change, message = CHANGES[name]
    entries = dict(good)
    change(entries)
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
    for load in (pliant.BlendedModel.load, files.load_model):
        with pytest.raises(FormatError, match=message):
            load(tmp_path / "bad.npz")

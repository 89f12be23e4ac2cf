"""Real URDF files whose inertias no solid can have load when asked to be repaired; sound links stay as they are."""

import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import pliant
from formats import corpus
from pliant.errors import RepairedWarning

_, REFUSED = corpus.EXPECTED["example-robot-data"]
MASSLESS = "robots/romeo_description/urdf/romeo_laas_small.urdf"  # moving links without mass besides
BROKEN = [
    name
    for name, why in REFUSED.items()
    if why in (corpus._TRIANGLE, corpus._EIGENVALUES) and name != MASSLESS
]


def inertias(file):
    """Mass and principal moments of every link, straight from the file."""
    out = {}
    for link in ElementTree.parse(file).getroot().findall("link"):
        inertial = link.find("inertial")
        if inertial is not None:
            inertia, mass = inertial.find("inertia"), inertial.find("mass")
            assert inertia is not None
            assert mass is not None
            i = {key: float(value) for key, value in inertia.attrib.items()}
            xy, xz, yz = (i.get(key, 0.0) for key in ("ixy", "ixz", "iyz"))
            matrix = [[i["ixx"], xy, xz], [xy, i["iyy"], yz], [xz, yz, i["izz"]]]
            out[link.get("name")] = float(mass.attrib["value"]), np.linalg.eigvalsh(matrix)
    return out


def test_all_but_one_can_be_repaired():
    assert len(BROKEN) == 18
    file = corpus.folder("example-robot-data") / MASSLESS
    with pytest.warns(RepairedWarning), pytest.raises(pliant.errors.FormatError, match="needs mass"):
        pliant.load(file, repair=True)


@pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning")
@pytest.mark.parametrize("name", BROKEN)
def test_broken_inertias_are_repaired(name):
    file = corpus.folder("example-robot-data") / name
    with pytest.raises(pliant.errors.FormatError, match="repair=True"):
        pliant.load(file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = pliant.load(file, repair=True)
    (warning,) = [str(w.message) for w in caught if w.category is RepairedWarning]
    assert "raised the moments of inertia of" in warning
    ours = np.linalg.eigvalsh(m.inertia)
    for link, (mass, moments) in inertias(file).items():
        if link not in m.body_names:
            continue  # a root called "world"
        b = m.body_index(link)
        assert m.mass[b] == pytest.approx(mass, rel=1e-12)
        if mass == 0:
            assert not m.inertia[b].any()
            continue
        assert (ours[b] >= moments - 1e-9 * abs(moments[2])).all()  # raised, never lowered
        sound = (
            moments[0] > 1e-9 * moments[2] > 0
            and moments[0] > 1e-13
            and moments[0] + moments[1] >= moments[2]
        )
        if sound:
            assert np.allclose(ours[b], moments, rtol=1e-9)


@pytest.mark.parametrize(
    "attributes", ['ixx="x" iyy="1" izz="1"', 'ixx="nan" iyy="1" izz="1"', 'ixx="1e300" iyy="1" izz="1"']
)
def test_what_cannot_be_repaired_is_refused(tmp_path, attributes):
    file = tmp_path / "bad.urdf"
    file.write_text(
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/>'
        f"<inertia {attributes}/></inertial></link>"
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    with pytest.raises(pliant.errors.PliantError, match=r"bad\.urdf"):
        pliant.load(file, repair=True)

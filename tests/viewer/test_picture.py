"""Pictures: what is drawn, that nothing needs a display, and which mistakes are refused."""

from __future__ import annotations

import errno
import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest

import pliant
from pliant import shapes
from pliant.errors import InputError, UnknownNameError
from pliant.viewer import draw, picture


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


def ink(image):
    """Fraction of pixels that are not white."""
    return float((image.min(axis=2) < 245).mean())


def one(shape, **body):
    b = pliant.Builder("one")
    b.body("body", mass=1.0, inertia=(1, 1, 1), shapes=[shape], **body)
    b.hinge("hinge", "world", "body", anchor=(0, 0, 0), axis=(0, 1, 0), stiffness=1.0)
    return b.build()


TETRAHEDRON = ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
SHAPES = {
    "sphere": shapes.sphere(0.5),
    "box": shapes.box((0.5, 0.3, 0.2)),
    "capsule": shapes.capsule(0.2, 0.4),
    "cylinder": shapes.cylinder(0.3, 0.4),
    "ellipsoid": shapes.ellipsoid((0.5, 0.3, 0.2)),
    "mesh": shapes.mesh(*TETRAHEDRON),
}


# --- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SHAPES, "plane"])
def test_every_kind_of_shape_is_drawn(name):
    shape = SHAPES.get(name, shapes.plane(1, 1))
    image = pixels(picture(one(shape), size=(200, 160)))
    assert image.shape == (160, 200, 3)
    assert ink(image) > 0.15


def test_png_is_written(tmp_path):
    figure = picture(pliant.gallery.two_link(), tmp_path / "two.png", title="two links", size=(300, 200))
    image = matplotlib.image.imread(tmp_path / "two.png")
    assert image.shape[:2] == (200, 300)
    assert ink((image[..., :3] * 255).astype(int)) > 0.02
    assert figure.axes[0].get_title() == "two links"


@pytest.mark.parametrize("name", ["picture.svg", "picture.pdf", "picture"])
def test_other_formats(tmp_path, name):
    picture(pliant.gallery.two_link(), tmp_path / name, size=(200, 160))
    start = (tmp_path / name).read_bytes()[:20]
    assert start.startswith({"picture.svg": b"<?xml", "picture.pdf": b"%PDF", "picture": b"\x89PNG"}[name])


def test_the_nearer_body_hides_the_other():
    b = pliant.Builder("two balls")
    for name, y, rgba in (("near", -1.0, (1, 0, 0, 1)), ("far", 1.0, (0, 0, 1, 1))):
        b.body(name, position=(0, y, 0), shapes=[shapes.sphere(0.5, rgba=rgba)])
        b.hinge(name, "world", name, anchor=(0, y, 0), axis=(1, 0, 0))
    m = b.build()

    def red_and_blue(azimuth):
        image = pixels(picture(m, size=(200, 200), view=(0, azimuth)))[40:160, 40:160]
        return (image[..., 0] > image[..., 2] + 60).sum(), (image[..., 2] > image[..., 0] + 60).sum()

    red, blue = red_and_blue(-90)
    assert red > 1000 > 50 > blue
    red, blue = red_and_blue(90)
    assert blue > 1000 > 50 > red


def test_the_reference_pose_is_a_pale_ghost():
    moved = pliant.Configuration(pliant.gallery.two_link(), {"base": 0.5})
    plain = pixels(picture(moved, reference=False, size=(400, 300)))
    ghost = pixels(picture(moved, size=(400, 300)))
    assert not np.array_equal(plain, ghost)
    grey = np.ptp(ghost, axis=2) < 8
    assert ((ghost.mean(axis=2) > 200) & (ghost.mean(axis=2) < 246) & grey).sum() > 500


def red(image):
    """Pixels in the colour of forces; the triad below has a red axis of its own."""
    image = image[: int(0.8 * len(image))]
    return (image[..., 0] > 170) & (image[..., 1] < 80) & (image[..., 2] < 80)


def test_loads_are_arrows():
    m = pliant.gallery.flexure_stage()
    found = pliant.equilibrium(m, {"stage": (10, 0, 0)})
    assert red(pixels(picture(found))).sum() > 50
    assert red(pixels(picture(found, forces={}))).sum() == 0
    assert red(pixels(picture(m, forces={"stage": (0, 0, 5)}))).sum() > 50
    follower = pliant.equilibrium(m, {"stage": {"force": (10, 0, 0), "frame": "body"}})
    assert red(pixels(picture(follower))).sum() > 50


def test_weights_are_not_drawn_but_loads_beside_them_are():
    m = pliant.gallery.flexure_stage()
    sagging = pliant.equilibrium(m, gravity=(0, 0, -9.81))
    assert red(pixels(picture(sagging))).sum() == 0
    pulled = pliant.equilibrium(m, {"stage": (10, 0, 0)}, gravity=(0, 0, -9.81))
    assert red(pixels(picture(pulled))).sum() > 50


def test_huge_mechanisms_are_lines():
    m = pliant.gallery.millipede(legs=100, leg_links=10, spine=600)
    figure = picture(m, size=(400, 300))
    assert not figure.axes[0].images
    assert ink(pixels(figure)) > 0.005


def test_bodies_without_shapes_have_a_skeleton():
    b = pliant.Builder("bare")
    parent = "world"
    for i in range(3):
        b.body(f"b{i}", mass=1, inertia=(1, 1, 1), position=(i + 1, 0, 0))
        b.hinge(f"j{i}", parent, f"b{i}", anchor=(i, 0, 0), axis=(0, 1, 0))
        parent = f"b{i}"
    assert ink(pixels(picture(b.build(), size=(300, 200)))) > 0.01


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_any_size_of_mechanism(scale):
    b = pliant.Builder("scaled")
    b.body("rod", shapes=[shapes.rod((0, 0, 0), (scale, 0, 0), 0.1 * scale)])
    b.hinge("pivot", "world", "rod", anchor=(0, 0, 0), axis=(0, 1, 0))
    assert ink(pixels(picture(b.build(), size=(200, 160)))) > 0.05


@pytest.mark.parametrize("name", pliant.gallery.names())
def test_the_gallery_can_be_drawn(name):
    small = {
        "forest": {"plants": 3},
        "millipede": {"legs": 4, "spine": 20},
        "molecule": {"links": 50},
        "helix": {"links": 10},
    }
    m = pliant.gallery.make(name, **small.get(name, {}))
    assert ink(pixels(picture(m, size=(240, 180)))) > 0.02


def test_pictures_are_deterministic():
    first, second = (pixels(picture(pliant.gallery.gripper(), size=(300, 200))) for _ in range(2))
    assert np.array_equal(first, second)


def test_draw_into_panels():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3), dpi=100)
    for panel, name in enumerate(("gripper", "two_link"), start=1):
        draw(pliant.gallery.make(name), figure.add_subplot(1, 2, panel), title=name)
    assert [axes.get_title() for axes in figure.axes] == ["gripper", "two_link"]
    assert all(axes.get_aspect() == 1 for axes in figure.axes)


# --- mistakes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"view": 3}, "view"),
        ({"view": (0, np.nan)}, "view"),
        ({"size": (0, 100)}, "size"),
        ({"size": "big"}, "size"),
        ({"forces": [1, 2, 3]}, "mapping"),
        ({"forces": {"left": (1, 2)}}, "left"),
        ({"forces": {"left": (1, 2, np.inf)}}, "left"),
        ({"forces": {"left": "up"}}, "left"),
        ({"path": 3}, "path"),
        ({"path": ""}, "path"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        picture(pliant.gallery.two_link(), **arguments)


def test_unknown_body():
    with pytest.raises(UnknownNameError, match="did you mean 'left'"):
        picture(pliant.gallery.two_link(), forces={"lfet": (0, 0, 1)})


def test_not_a_mechanism():
    with pytest.raises(InputError, match="Mechanism or a Configuration"):
        picture("helix")  # pyright: ignore[reportArgumentType]


def test_no_folder_is_made(tmp_path):
    with pytest.raises(InputError, match="no folder"):
        picture(pliant.gallery.two_link(), tmp_path / "new" / "two.png")
    assert not (tmp_path / "new").exists()
    with pytest.raises(InputError, match="is a folder"):
        picture(pliant.gallery.two_link(), tmp_path)
    with pytest.raises(InputError, match=r"\.xyz"):
        picture(pliant.gallery.two_link(), tmp_path / "two.xyz")


def test_a_folder_that_is_not_writable(tmp_path, monkeypatch):
    """The refusal is made up: whoever runs the tests as root may write everywhere."""

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", refuse)
    with pytest.raises(InputError, match=r"two\.png' cannot be written: Permission denied"):
        picture(pliant.gallery.two_link(), tmp_path / "two.png")


def test_matplotlib_is_imported_late_and_pyplot_never():
    code = (
        "import sys, pliant, pliant.viewer; assert 'matplotlib' not in sys.modules;"
        "pliant.viewer.picture(pliant.gallery.two_link(), size=(100, 80));"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_notebooks_show_pictures():
    m = pliant.gallery.two_link()
    for what in (m, pliant.equilibrium(m, {"right": (1, 0, 0)})):
        data = what._repr_png_()
        assert data.startswith(b"\x89PNG")
        assert len(data) > 1000

"""Model files are untrusted: what they may read, and how much they may make us do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pliant.errors import FormatError, InputError, UnsafePathError
from pliant.formats import compiler, load, xml

from . import samples

BODY = '<worldbody><body><joint/><geom type="{0}" {1}/></body></worldbody>'
SPHERE = BODY.format("sphere", 'size=".1"')
MESH = BODY.format("mesh", 'mesh="m"')
OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def tree(tmp_path):
    """A model's folder with a mesh, beside a folder with secrets."""
    (tmp_path / "model" / "meshes").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    for folder in ("model", "model/meshes", "secret"):
        (tmp_path / folder / "m.obj").write_text(OBJ)
    (tmp_path / "secret" / "part.xml").write_text(f"<mujoco>{SPHERE}</mujoco>")
    (tmp_path / "model" / "part.xml").write_text(f"<mujoco>{SPHERE}</mujoco>")
    return tmp_path


def write(tree, text, name="model.xml"):
    file = tree / "model" / name
    file.write_text(text)
    return file


def mesh_model(reference, settings=""):
    return f'<mujoco>{settings}<asset><mesh name="m" file="{reference}"/></asset>{MESH}</mujoco>'


@pytest.mark.parametrize(
    ("reference", "settings"),
    [
        ("m.obj", ""),
        ("meshes/m.obj", ""),
        ("meshes/../m.obj", ""),
        ("m.obj", '<compiler meshdir="meshes"/>'),
        ("m.obj", '<compiler assetdir="meshes/"/>'),
        ("/somewhere/else/m.obj", '<compiler meshdir="meshes" strippath="true"/>'),
        ("meshes\\m.obj", ""),
    ],
)
def test_files_below_the_model_are_read(tree, reference, settings):
    m = load(write(tree, mesh_model(reference, settings)))
    assert len(m.shape_table.meshes[0].vertices) == 4


@pytest.mark.parametrize(
    "text",
    [
        mesh_model("../secret/m.obj"),
        mesh_model("meshes/../../secret/m.obj"),
        mesh_model("m.obj", '<compiler meshdir="../secret"/>'),
        mesh_model("m.obj", '<compiler assetdir="../secret"/>'),
        mesh_model("/etc/passwd"),
        mesh_model("/etc/passwd", '<compiler meshdir="meshes"/>'),
        mesh_model("..\\secret\\m.obj"),
        f'<mujoco><include file="../secret/part.xml"/>{SPHERE}</mujoco>',
        '<mujoco><include file="/etc/passwd"/></mujoco>',
        f'<mujoco><asset><model name="p" file="../secret/part.xml"/></asset>{SPHERE}</mujoco>',
        f'<mujoco><worldbody><body><include file="../secret/part.xml"/></body></worldbody>{SPHERE}</mujoco>',
    ],
)
def test_files_elsewhere_are_not(tree, text):
    file = write(tree, text)
    with pytest.raises(UnsafePathError, match=r"outside the model's folder .*allow=\["):
        load(file)


def test_the_error_says_how_to_allow_it(tree):
    file = write(tree, mesh_model("../secret/m.obj"))
    with pytest.raises(UnsafePathError) as caught:
        load(file)
    folder = str(tree / "secret")
    assert f"allow=['{os.path.realpath(folder)}']" in str(caught.value)
    assert "line 1" in str(caught.value)
    assert load(file, allow=[folder]).body_count == 1
    assert load(file, allow=folder).body_count == 1


def test_links_are_followed_before_judging(tree):
    try:
        (tree / "model" / "inside.obj").symlink_to(tree / "model" / "meshes" / "m.obj")
        (tree / "model" / "outside.obj").symlink_to(tree / "secret" / "m.obj")
        (tree / "model" / "door").symlink_to(tree / "secret")
    except OSError:
        pytest.skip("this system makes no symbolic links")
    assert load(write(tree, mesh_model("inside.obj"))).body_count == 1
    for reference in ("outside.obj", "door/m.obj"):
        with pytest.raises(UnsafePathError):
            load(write(tree, mesh_model(reference)))


def test_a_model_that_is_itself_a_link_reads_beside_its_target(tree):
    file = write(tree, mesh_model("m.obj"))
    try:
        (tree / "secret" / "link.xml").symlink_to(file)
    except OSError:
        pytest.skip("this system makes no symbolic links")
    assert load(tree / "secret" / "link.xml").body_count == 1


@pytest.mark.parametrize("attribute", ["file", "fileright", "filename", "meshdir", "assetdir"])
def test_no_other_attribute_reaches_the_compiler(tree, attribute):
    """Had we overlooked an element that opens files, the compiler still could not."""
    with pytest.raises(FormatError, match="does not belong there"):
        load(
            write(
                tree,
                f"<mujoco>{BODY.format('sphere', f'{attribute}=~/etc/passwd~')}</mujoco>".replace("~", '"'),
            )
        )


@pytest.mark.parametrize(
    ("dropped", "count"),
    [
        ('<asset><texture name="t" type="2d" file="/etc/passwd"/></asset>', 0),
        ('<asset><texture type="skybox" fileup="/etc/passwd"/></asset>', 0),
        ('<asset><skin file="/etc/passwd"/></asset>', 1),
        ('<asset><hfield name="h" file="/etc/passwd" size="1 1 1 1"/></asset>', 0),
        ('<extension><plugin plugin="x"><config key="path" value="/etc/passwd"/></plugin></extension>', 0),
        ('<size memory="1000G" nuser_body="1000000000" nuserdata="2000000000"/>', 0),
        ('<custom><numeric name="n" size="2000000000"/></custom>', 0),
    ],
)  # fmt: skip
def test_what_is_not_needed_is_not_read(tree, dropped, count, recwarn):
    assert load(write(tree, f"<mujoco>{dropped}{SPHERE}</mujoco>")).body_count == 1
    assert len(recwarn) == count


def test_entities_and_document_types_are_refused(tree):
    bomb = '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    external = '<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    for head in (bomb, external, '<!DOCTYPE m SYSTEM "http://localhost/m.dtd">', "<!DOCTYPE mujoco>"):
        file = write(tree, f'<?xml version="1.0"?>{head}<mujoco model="&b;">{SPHERE}</mujoco>')
        with pytest.raises(FormatError, match="document types"):
            load(file)


def test_limits_of_size_and_depth(tree, monkeypatch):
    deep = "<mujoco>" + "<worldbody>" * 1000 + "</worldbody>" * 1000 + "</mujoco>"
    with pytest.raises(FormatError, match="levels"):
        load(write(tree, deep))
    monkeypatch.setattr(xml, "MAX_BYTES", 1000)
    with pytest.raises(FormatError, match="at most 1000"):
        load(write(tree, f"<mujoco>{' ' * 1000}{SPHERE}</mujoco>"))


@pytest.mark.parametrize(
    "text",
    [
        '<mujoco><worldbody><replicate count="1000000000"><body><joint/></body></replicate></worldbody></mujoco>',
        "<mujoco><worldbody>" + '<replicate count="100">' * 6 + "</replicate>" * 6 + "</worldbody></mujoco>",
        '<mujoco><worldbody><replicate count="1e300"><geom size=".1"/></replicate></worldbody></mujoco>',
        f'<mujoco><asset><mesh name="m" builtin="supertorus" params="1000000 1 1 1"/></asset>{SPHERE}</mujoco>',
    ],
)  # fmt: skip
def test_a_few_lines_cannot_become_millions_of_elements(tree, text, monkeypatch):
    # Refused by counting, before anything is expanded or compiled.
    monkeypatch.setattr(compiler, "compile_tree", lambda *_, **__: pytest.fail("it was compiled"))
    with pytest.raises(FormatError, match=r"at most|more than"):
        load(write(tree, text))


def test_replicated_elements_of_attached_models_count(tree, monkeypatch):
    monkeypatch.setattr(compiler, "compile_tree", lambda *_, **__: pytest.fail("it was compiled"))
    leaf = f'<worldbody><replicate count="3000" offset="1 0 0">{SPHERE[11:-12]}</replicate></worldbody>'
    (tree / "model" / "part.xml").write_text(f"<mujoco>{leaf}</mujoco>")
    models = "".join(f'<model name="m{i}" file="part.xml"/>' for i in range(20))
    attached = "".join(f'<attach model="m{i}" prefix="p{i}"/>' for i in range(20))
    with pytest.raises(FormatError, match="more than 50000 elements"):
        load(write(tree, f"<mujoco><asset>{models}</asset><worldbody>{attached}</worldbody></mujoco>"))


def test_elements_of_very_many_attributes_are_refused(tree):
    many = " ".join(f'a{i}="1"' for i in range(300_000))
    with pytest.raises(FormatError, match=r"line 1: <body> has 300000 attributes; at most 200"):
        load(write(tree, f"<mujoco><worldbody><body {many}/></worldbody></mujoco>"))


@pytest.mark.parametrize("given", ["nan", "-NaN", "1 nan 2"])
@pytest.mark.parametrize("place", ["mass", "pos", "density"])
def test_numbers_that_are_none_are_refused(tree, given, place):
    geom = f'<geom size=".1" {place}="{given}"/>'
    with pytest.raises(FormatError, match=f"<geom> has {place}="):
        load(write(tree, f"<mujoco><worldbody><body><joint/>{geom}</body></worldbody></mujoco>"))


def test_names_may_be_nan(tree):
    m = load(
        write(
            tree,
            f"<mujoco>{SPHERE.replace('<body>', '<body name=' + chr(34) + 'nan' + chr(34) + '>')}</mujoco>",
        )
    )
    assert m.body_names == ("nan",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits are those of POSIX")
@pytest.mark.parametrize("gigabytes", [8, 4])
def test_models_load_where_memory_is_limited(tree, gigabytes):
    """Clusters limit the address space; the compiler takes the smaller of that limit and its own."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, ({gigabytes} << 30,) * 2)
import pliant
print(pliant.load({str(write(tree, f"<mujoco>{SPHERE}</mujoco>"))!r}).body_count)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.stdout.strip() == "1", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits are those of POSIX")
def test_a_limit_of_memory_is_named_where_the_compiler_fails(tree):
    script = f"""
import resource
from pliant.formats import compiler
from pliant.errors import FormatError
resource.setrlimit(resource.RLIMIT_AS, (6 << 30,) * 2)
class Dead(compiler._Compiler):
    def request(self, *_):
        raise EOFError
compiler._Compiler = Dead
import pliant
try:
    pliant.load({str(write(tree, f"<mujoco>{SPHERE}</mujoco>"))!r})
except FormatError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "a limit of 6.0 GiB is set (`ulimit -v`)" in done.stdout, done.stderr


def test_include_loops_and_repetition(tree):
    with pytest.raises(FormatError, match="more than once"):
        load(write(tree, '<mujoco><include file="model.xml"/></mujoco>'))
    with pytest.raises(FormatError, match="more than once"):
        load(write(tree, '<mujoco><include file="part.xml"/><include file="part.xml"/></mujoco>'))
    (tree / "model" / "a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    (tree / "model" / "b.xml").write_text('<mujoco><include file="a.xml"/></mujoco>')
    with pytest.raises(FormatError, match="more than once"):
        load(tree / "model" / "a.xml")


def test_attached_models(tree):
    parent = (
        '<mujoco><asset><model name="p" file="part.xml"/></asset><worldbody>'
        '<attach model="p" prefix="left_"/>'
        '<frame pos="1 0 0"><attach model="p" prefix="right_"/></frame></worldbody></mujoco>'
    )
    named = MESH.replace("<body>", '<body name="b">')
    part = f'<compiler meshdir="meshes"/><asset><mesh name="m" file="m.obj"/></asset>{named}'
    (tree / "model" / "part.xml").write_text(f"<mujoco>{part}</mujoco>")
    m = load(write(tree, parent))
    assert m.body_names == ("left_b", "right_b")
    assert m.reference_poses[1, 0, 3] == 1
    (tree / "model" / "part.xml").write_text(
        '<mujoco><asset><model name="p" file="model.xml"/></asset></mujoco>'
    )
    with pytest.raises(FormatError, match="contains itself"):
        load(write(tree, parent))


# --- URDF ---------------------------------------------------------------------------------------------------


def urdf(reference):
    return samples.ARM.replace('<sphere radius=".1"/>', f'<mesh filename="{reference}"/>')


def test_package_paths(tmp_path, recwarn):
    package = tmp_path / "lab" / "arm_description"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes" / "m.obj").write_text(OBJ)
    file = package / "urdf" / "arm.urdf"
    for reference in (
        "package://arm_description/meshes/m.obj",
        "package:///arm_description/meshes/m.obj",
        "package://arm_description/meshes/../meshes/m.obj",
    ):
        file.write_text(urdf(reference))
        assert len(load(file).shape_table.meshes) == 1
    # Under another name, if its manifest says so.
    (package / "package.xml").write_text("<package><name>robot_arm</name></package>")
    file.write_text(urdf("package://robot_arm/meshes/m.obj"))
    assert len(load(file).shape_table.meshes) == 1
    assert [str(w.message) for w in recwarn if "mesh" in str(w.message)] == []
    # Out of the package again, or into one beside it.
    (tmp_path / "lab" / "other").mkdir()
    (tmp_path / "lab" / "other" / "m.obj").write_text(OBJ)
    for reference in ("package://arm_description/../other/m.obj", "package://other/m.obj"):
        file.write_text(urdf(reference))
        with pytest.raises(UnsafePathError):
            load(file)
        assert len(load(file, allow=[tmp_path / "lab"]).shape_table.meshes) == 1


def test_a_package_may_not_be_a_home_or_system_folder(tmp_path, monkeypatch):
    home = tmp_path / "people" / "me"
    home.mkdir(parents=True)
    (tmp_path / "people" / "m.obj").write_text(OBJ)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    (home / "arm.urdf").write_text(urdf("package://people/m.obj"))
    with pytest.raises(UnsafePathError):
        load(home / "arm.urdf")


@pytest.mark.filterwarnings("ignore::pliant.errors.UnsupportedWarning")
def test_file_addresses(tree):
    inside = (tree / "model" / "m.obj").as_uri()
    outside = (tree / "secret" / "m.obj").as_uri()
    assert len(load(write(tree, urdf(inside), "arm.urdf")).shape_table.meshes) == 1
    with pytest.raises(UnsafePathError):
        load(write(tree, urdf(outside), "arm.urdf"))
    for reference in ("http://localhost/m.obj", "ftp://localhost/m.obj"):
        with pytest.raises(UnsafePathError, match="only package:// and file://"):
            load(write(tree, urdf(reference), "arm.urdf"))


def test_missing_and_unreadable_meshes_are_left_out(tree):
    (tree / "model" / "m.dae").write_text("<COLLADA/>")
    (tree / "model" / "bad.stl").write_text("solid ascii\n")
    cases = {
        "gone.stl": "1 x mesh file that was not found",
        "package://nowhere/m.stl": "not found",
        "m.dae": r"1 x mesh in a format MuJoCo cannot read \(\.dae\)",
        "bad.stl": "1 x mesh that MuJoCo cannot read",
        "file:///no/such/m.stl": "not found",
    }
    for reference, message in cases.items():
        with pytest.warns(match=message):
            m = load(write(tree, urdf(reference), "arm.urdf"))
        assert m.body_names == ("base", "upper", "lower", "tool")
        assert m.mass.tolist() == [2, 1.5, 1, 0]


# --- arguments ----------------------------------------------------------------------------------------------


def test_paths_that_are_none(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        load(tmp_path / "gone.xml")
    with pytest.raises(FormatError, match="is not a file"):
        load(tmp_path)
    for path in (None, 3, b"model.xml", "", "a\0b"):
        with pytest.raises(InputError):
            load(path)  # type: ignore[arg-type]
    (tmp_path / "m.xml").write_text(f"<mujoco>{SPHERE}</mujoco>")
    with pytest.raises(InputError, match="is not a folder"):
        load(tmp_path / "m.xml", allow=[tmp_path / "gone"])
    with pytest.raises(InputError):
        load(tmp_path / "m.xml", allow=[3])  # type: ignore[list-item]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    with pytest.raises(FormatError, match="is not a file"):
        load(tmp_path / "pipe.xml")

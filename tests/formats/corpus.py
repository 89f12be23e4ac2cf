"""The real model files of the test-only wheels and of ../shared/models, and why some of them are refused."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"the test-only wheel '{name}' is not installed: run `make setup`"
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _example_robot_data() -> Path:
    files = importlib.metadata.files("example-robot-data") or []
    manifest = next(f for f in files if str(f).endswith("share/example-robot-data/package.xml"))
    return Path(str(manifest.locate())).resolve().parent


def folder(wheel: str) -> Path:
    """Where the models of a wheel are."""
    if wheel == "shared":
        return REPOSITORY.parent / "shared" / "models"
    return _example_robot_data() if wheel == "example-robot-data" else _package(wheel)


def files(wheel: str) -> list[Path]:
    """All XML and URDF files that may be models."""
    root = folder(wheel)
    return sorted(f for f in (*root.rglob("*.xml"), *root.rglob("*.urdf")) if f.name != "package.xml")


_FRAGMENT = "fragment for other"
_NO_BODY = "describes no body"
_MISSING = "there is no such file"
_TRIANGLE = "A + B >= C"
_EIGENVALUES = "positive eigenvalues"
_MASSLESS = "A body that moves needs mass"
_OTHER_XML = "is neither MJCF (<mujoco>) nor URDF (<robot>)"

# MuJoCo reads these; all others that we refuse it refuses too.
OURS_ALONE = (_NO_BODY,)

# wheel -> (number of files, file -> part of the reason it is refused).
EXPECTED: dict[str, tuple[int, dict[str, str]]] = {
    "dm_control": (
        65,
        {
            "composer/arena.xml": _NO_BODY,
            "entities/props/duplo/duplo2x4.xml": _NO_BODY,
            "locomotion/walkers/assets/build_fruitfly/assets/drosophila.xml": _MISSING,
            "locomotion/walkers/assets/build_fruitfly/assets/drosophila_defaults.xml": _NO_BODY,
            "locomotion/walkers/assets/build_fruitfly/floor.xml": _MISSING,
            "locomotion/walkers/assets/build_fruitfly/fruitfly.xml": _MISSING,
            "locomotion/walkers/assets/dog_v2/dog_base.xml": _NO_BODY,
            "locomotion/walkers/assets/dog_v2/scene.xml": "repeated name 'grid' in material",
            "mjcf/schema.xml": _OTHER_XML,
            "mjcf/test_assets/arena.xml": _NO_BODY,
            "mjcf/test_assets/attribute_test_schema.xml": _OTHER_XML,
            "mjcf/test_assets/included.xml": _NO_BODY,
            "mjcf/test_assets/included_with_invalid_filenames.xml": _MISSING,
            "mjcf/test_assets/model_with_assetdir.xml": _NO_BODY,
            "mjcf/test_assets/model_with_assets.xml": _NO_BODY,
            "mjcf/test_assets/model_with_include.xml": _NO_BODY,
            "mjcf/test_assets/model_with_invalid_filenames.xml": _MISSING,
            "mjcf/test_assets/model_with_nameless_assets.xml": _NO_BODY,
            "mjcf/test_assets/model_with_separators.xml": _NO_BODY,
            "mjcf/test_assets/test_model.xml": _MASSLESS,
            "mujoco/testing/assets/model_with_assets.xml": _MISSING,
            "mujoco/testing/assets/sphere.xml": _NO_BODY,
            "suite/common/materials.xml": _NO_BODY,
            "suite/common/skybox.xml": _NO_BODY,
            "suite/common/visual.xml": _NO_BODY,
            "suite/lqr.xml": _NO_BODY,
            "third_party/kinova/common.xml": _NO_BODY,
        },
    ),
    "gymnasium_robotics": (
        59,
        {
            "envs/assets/adroit_hand/adroit_assets.xml": _FRAGMENT,
            "envs/assets/adroit_hand/adroit_model.xml": _FRAGMENT,
            "envs/assets/fetch/robot.xml": _NO_BODY,
            "envs/assets/fetch/shared.xml": _MISSING,
            "envs/assets/hand/robot.xml": _NO_BODY,
            "envs/assets/hand/robot_touch_sensors_92.xml": _NO_BODY,
            "envs/assets/hand/shared.xml": "joint 'robot0:WRJ1' not found in tendon",
            "envs/assets/hand/shared_asset.xml": "Schema violation: unrecognized element (element <material>), line 8",
            "envs/assets/hand/shared_touch_sensors_92.xml": _NO_BODY,
            "envs/assets/kitchen_franka/franka_assets/actuator.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/franka_assets/assets.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/franka_assets/basic_scene.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/franka_assets/chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/franka_assets/franka_config.xml": _OTHER_XML,
            "envs/assets/kitchen_franka/kitchen_assets/basic_scene.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/backwall_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/backwall_chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/counters_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/counters_chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/hingecabinet_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/hingecabinet_chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/kettle_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/kettle_chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/microwave_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/microwave_chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/oven_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/oven_chain.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/slidecabinet_asset.xml": _FRAGMENT,
            "envs/assets/kitchen_franka/kitchen_assets/item_assets/slidecabinet_chain.xml": _FRAGMENT,
        },
    ),
    "example-robot-data": (
        69,
        {
            "robots/alex_description/urdf/alex_psyonic_hands.urdf": _TRIANGLE,
            "robots/allegro_hand_description/urdf/allegro_left_hand.urdf": _TRIANGLE,
            "robots/allegro_hand_description/urdf/allegro_right_hand.urdf": _TRIANGLE,
            "robots/anymal_b_simple_description/robots/anymal-kinova.urdf": _EIGENVALUES,
            "robots/anymal_b_simple_description/robots/anymal.urdf": _EIGENVALUES,
            "robots/anymal_c_simple_description/urdf/anymal.urdf": _TRIANGLE,
            "robots/b1_description/urdf/b1-z1.urdf": _EIGENVALUES,
            "robots/b1_description/urdf/b1.urdf": _EIGENVALUES,
            "robots/finger_edu_description/robots/finger_edu.urdf": _EIGENVALUES,
            "robots/go1_description/urdf/go1.urdf": _EIGENVALUES,
            "robots/human_description/robots/human.urdf": _MASSLESS,
            "robots/hyq_description/robots/hyq_no_sensors.urdf": _EIGENVALUES,
            "robots/icub_description/robots/icub.urdf": _EIGENVALUES,
            "robots/icub_description/robots/icub_reduced.urdf": _EIGENVALUES,
            "robots/pr2_description/urdf/pr2.urdf": _TRIANGLE,
            "robots/romeo_description/urdf/romeo.urdf": _MASSLESS,
            "robots/romeo_description/urdf/romeo_laas_small.urdf": _EIGENVALUES,
            "robots/romeo_description/urdf/romeo_small.urdf": _TRIANGLE,
            "robots/tiago_description/robots/tiago.urdf": _EIGENVALUES,
            "robots/tiago_description/robots/tiago_dual.urdf": _EIGENVALUES,
            "robots/tiago_description/robots/tiago_no_hand.urdf": _EIGENVALUES,
            "robots/ur_description/urdf/ur3.urdf": _NO_BODY,
        },
    ),
    "shared": (
        15,
        {
            "shadow_hand/keyframes.xml": "keyframe 'scissors': invalid qpos size",
        },
    ),
}

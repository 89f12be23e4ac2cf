"""Load robots from MJCF and URDF, give springs to joints without any, load, save, and let MuJoCo check the result.

python examples/03_load_a_robot.py [robot.xml | robot.urdf ...]     (without a file: two small ones, written to out/)
"""

import sys
from pathlib import Path

import mujoco

import pliant
from pliant.viewer import picture

OUT = Path("out")
# A finger: a four-bar linkage closed by <connect>, driven by a position servo.
FINGER = """<mujoco model="finger"><default><joint axis="0 1 0"/><geom type="capsule" size=".006"/></default><worldbody>
  <body name="driver"><joint name="drive"/><geom fromto="0 0 0 .02 0 .08"/>
    <body name="pad" pos=".02 0 .08"><joint name="pin"/><geom type="box" pos=".025 0 .01" size=".04 .01 .006"/></body>
  </body>
  <body name="follower" pos=".05 0 0"><joint name="pivot"/><geom fromto="0 0 0 .02 0 .08"/></body>
</worldbody><equality><connect body1="follower" body2="pad" anchor=".02 0 .08"/></equality>
<actuator><position joint="drive" kp="5"/></actuator></mujoco>"""
INERTIA = '<inertia ixx=".02" iyy=".02" izz=".01" ixy="0" ixz="0" iyz="0"/>'
MASS = f'<inertial><origin xyz="0 0 -.2"/><mass value="1"/>{INERTIA}</inertial>'
LOOKS = '<visual><origin xyz="0 0 -.2"/><geometry><cylinder radius=".03" length=".4"/></geometry></visual>'
BAR = MASS + LOOKS
HINGE = '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="99" velocity="9"/>'
LEG = f"""<robot name="leg">
  <link name="hip">{MASS}<visual><geometry><box size=".14 .2 .1"/></geometry></visual></link>
  <link name="thigh">{BAR}</link><link name="shank">{BAR}</link>
  <joint name="hip_pitch" type="revolute"><parent link="hip"/><child link="thigh"/>{HINGE}</joint>
  <joint name="knee" type="revolute"><origin xyz="0 0 -.4"/><parent link="thigh"/><child link="shank"/>{HINGE}</joint>
</robot>"""


def springs_for_all(robot: pliant.Mechanism) -> pliant.Mechanism:
    """Torque-controlled robots have joints without springs. Give those a little stiffness, and fix a free base."""
    if "free" in robot.joint_types:
        robot = robot.with_fixed_base()
    loose = [robot.dof_names[d] for d in range(robot.nv)
             if robot.stiffness[d] == 0 and robot.dof_joint[d] not in robot.topology.chords]  # fmt: skip
    return robot.with_stiffness(loose, 0.01 * robot.stiffness.max() or 50.0) if loose else robot


def main() -> None:
    OUT.mkdir(exist_ok=True)
    (OUT / "finger.xml").write_text(FINGER)
    (OUT / "leg.urdf").write_text(LEG)
    for path in sys.argv[1:] or [OUT / "finger.xml", OUT / "leg.urdf"]:
        robot = springs_for_all(pliant.load(path))
        tip, name = robot.end_effectors[0], Path(path).stem
        push = 0.1 * robot.stiffness.max() / robot.radius  # newtons: enough to see something
        found = pliant.equilibrium(robot, {tip: (push, 0, 0)})
        print(robot.summary(), "\n\n", found.summary(), "\n", sep="")
        robot.save(OUT / f"{name}.json")  # lossless: pliant.load reads it back
        picture(found, OUT / f"{name}.png", view=(12, -70), title=f"{robot.name}, {push:.3g} N on '{tip}'")
        model = mujoco.MjModel.from_xml_string(robot.to_mjcf())
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)  # the reference pose
        mujoco.mj_kinematics(model, data)
        gap = abs(data.body(tip).xpos - robot.reference_poses[robot.body_index(tip), :3, 3]).max()
        print(f"MuJoCo loads the export; '{tip}' agrees to {gap:.0e} m. Pictures and files are in {OUT}/\n")


if __name__ == "__main__":
    main()

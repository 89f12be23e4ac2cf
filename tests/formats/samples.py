"""Small models that between them use everything the loader knows."""

from __future__ import annotations

ALL_SORTS = """
<mujoco model="all sorts">
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81"/>
  <default>
    <geom density="500"/>
    <default class="plate"><geom type="box" size=".1 .2 .05"/></default>
  </default>
  <asset>
    <mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
    <hfield name="hills" nrow="4" ncol="4" size="1 1 1 1"/>
    <texture name="checks" type="2d" builtin="checker" width="8" height="8"/>
    <material name="checked" texture="checks" rgba="1 .5 0 1"/>
  </asset>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <geom type="hfield" hfield="hills"/>
    <replicate count="3" offset="1 0 0"><geom size=".1"/></replicate>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom size=".1" material="checked"/>
      <site name="s1" pos=".1 0 0"/>
      <body name="arm" pos="1 0 0" euler=".1 .2 .3">
        <joint name="slide" type="slide" axis="1 0 0" range="-1 1" stiffness="2" damping="1" springref=".1"/>
        <joint name="turn" ref=".3" axis="0 1 1" pos=".1 0 0" armature=".01"/>
        <geom class="plate"/>
        <site name="s2" pos="0 0 .2"/>
        <body name="wrist" pos="0 1 0">
          <joint name="ball" type="ball" stiffness="3" range="0 2"/>
          <geom type="mesh" mesh="tetra"/>
          <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/>
        </body>
      </body>
    </body>
    <body name="hand" mocap="true"><geom size=".1"/></body>
    <body name="post">
      <joint name="sway" type="hinge" axis="1 0 0" damping=".2"/>
      <joint name="nod" type="hinge" axis="0 1 0" ref="-.2"/>
      <geom type="cylinder" size=".1 .2"/>
      <geom type="ellipsoid" size=".1 .2 .3" pos="0 0 .5"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="post" body2="arm" anchor="0 0 .2"/>
    <weld body1="hand" body2="wrist" active="false"/>
    <joint joint1="sway" joint2="nod" polycoef="0 2 0 0 0"/>
  </equality>
  <tendon>
    <fixed name="cord" stiffness="3" springlength=".1">
      <joint joint="slide" coef="1"/><joint joint="turn" coef="-2"/>
    </fixed>
    <spatial name="string" limited="true" range="0 3"><site site="s1"/><site site="s2"/></spatial>
  </tendon>
  <actuator>
    <position name="p" joint="slide" kp="3" kv="1" ctrlrange="-1 1" gear="2"/>
    <general name="g" tendon="cord" gainprm="3" biastype="affine" biasprm="0 -3 -1"/>
    <muscle tendon="string" lengthrange="0 1"/>
    <motor joint="turn"/>
  </actuator>
  <sensor><jointpos joint="slide"/></sensor>
  <keyframe>
    <key name="up" qpos="0 0 2 1 0 0 0  .1 .2  1 0 0 0  .2 .1" ctrl=".5 .1 0 0"/>
  </keyframe>
</mujoco>
"""

ARM = """
<robot name="arm">
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base">
    <inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><box size="1 1 1"/></geometry><material name="red"/></visual>
  </link>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 .5" rpy="0 .1 0"/><mass value="1.5"/>
      <inertia ixx=".1" iyy=".1" izz=".02" ixy=".001" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0 0 .5"/><geometry><cylinder radius=".1" length="1"/></geometry></collision>
  </link>
  <link name="lower">
    <inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius=".1"/></geometry></collision>
  </link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 .5" rpy=".1 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" effort="3" velocity="1"/><dynamics damping="0.5" friction="0.1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/>
    <mimic joint="shoulder" multiplier="2" offset="0"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 .1"/></joint>
</robot>
"""

FOUR_BAR = """
<mujoco>
  <worldbody>
    <body name="crank" pos="0 0 0"><joint name="a" axis="0 1 0" stiffness="1"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size=".05"/>
      <body name="coupler" pos="0 0 1"><joint name="b" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 2 0 0" size=".05"/></body>
    </body>
    <body name="rocker" pos="2 0 0"><joint name="c" axis="0 1 0" damping=".1"/>
      <geom type="capsule" fromto="0 0 0 0 0 1" size=".05"/></body>
  </worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="2 0 0"/></equality>
</mujoco>
"""

FLEXES = """
<mujoco>
  <worldbody>
    <body name="a"><joint name="j" damping="1"/><geom size=".1"/><site name="s"/>
      <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" dim="2" mass="1">
        <edge equality="true"/>
      </flexcomp>
    </body>
    <body name="b" pos="1 0 0"><joint name="k" type="slide"/><geom size=".1"/></body>
  </worldbody>
  <equality><joint joint1="j" joint2="k" polycoef="0 0 1 0 0"/></equality>
  <actuator>
    <velocity joint="k" kv="2"/><pid joint="j" kp="2" kv=".1"/><intvelocity joint="k" kp="4" actrange="-1 1"/>
  </actuator>
  <keyframe><key qpos="0 0"/></keyframe>
</mujoco>
"""

ALL = {"all_sorts.xml": ALL_SORTS, "arm.urdf": ARM, "four_bar.xml": FOUR_BAR, "flexes.xml": FLEXES}

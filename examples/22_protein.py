"""Which torsions of a protein respond when one of its ends is pulled? Give a PDB file, or take an ideal peptide."""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import pliant

OUT = Path("out")
HELIX, STRAND = (-57.0, -47.0), (-120.0, 130.0)  # phi and psi, degrees
FORCE, STEP, STEPS, TOLERANCE = 30.0, 0.1, 60, 1e-4  # kJ/(mol nm): 50 pN; ps; nm

# Side chains: atom, the three atoms before it, bond (Å), angle and torsion (degrees).
SIDE = {
    "ALA": [],
    "GLY": [],
    "SER": ["OG N CA CB 1.417 110.8 62"],
    "CYS": ["SG N CA CB 1.808 114 -65"],
    "VAL": ["CG1 N CA CB 1.527 110.5 175", "CG2 N CA CB 1.527 110.5 -63"],
    "LEU": ["CG N CA CB 1.53 116 -65", "CD1 CA CB CG 1.524 110.5 175", "CD2 CA CB CG 1.525 110.5 62"],
    "LYS": [
        "CG N CA CB 1.52 114 -67", "CD CA CB CG 1.52 111 180", "CE CB CG CD 1.52 111 180", "NZ CG CD CE 1.489 112 180",
    ],
    "GLU": [
        "CG N CA CB 1.52 114 -67", "CD CA CB CG 1.516 113 180",
        "OE1 CB CG CD 1.25 118 -10", "OE2 CB CG CD 1.25 118 170",
    ],
    "PHE": [
        "CG N CA CB 1.502 114 -65", "CD1 CA CB CG 1.384 121 90", "CD2 CA CB CG 1.384 121 -90",
        "CE1 CB CG CD1 1.382 121 180", "CE2 CB CG CD2 1.382 121 180", "CZ CG CD1 CE1 1.382 120 0",
    ],
    "PRO": ["CG N CA CB 1.492 104.5 30", "CD CA CB CG 1.503 106 -34"],
}  # fmt: skip
CODES = dict(zip("AGSCVLKEFP", SIDE, strict=True))


def place(a, b, c, bond: float, angle: float, torsion: float) -> np.ndarray:
    """The atom after a, b, c: at a distance from c, an angle at c, and a torsion about b-c."""
    angle, torsion = np.radians(angle), np.radians(torsion)
    axis = (c - b) / np.linalg.norm(c - b)
    normal = np.cross(b - a, axis)
    normal /= np.linalg.norm(normal)
    side = np.cross(normal, axis)
    return c + bond * (
        -np.cos(angle) * axis + np.sin(angle) * (np.cos(torsion) * side + np.sin(torsion) * normal)
    )


def peptide(sequence: str, shape: list[tuple[float, float]], chain: str = "A") -> str:
    """A peptide of ideal bonds and angles as a PDB file: one-letter codes, phi and psi (degrees) of every residue."""
    n, ca, c = np.array([(0.0, 0.0, 0.0), (1.458, 0.0, 0.0), (2.009, 1.422, 0.0)])
    lines: list[str] = []
    for i, (code, (_, psi)) in enumerate(zip(sequence, shape, strict=True)):
        name, last = CODES[code], i + 1 == len(sequence)
        atoms = {"N": n, "CA": ca, "C": c, "O": place(n, ca, c, 1.231, 120.5, psi + 180)}
        if name != "GLY":
            atoms["CB"] = place(c, n, ca, 1.53, 110.4, -122.6)
        for line in SIDE[name]:
            atom, *before = line.split()
            atoms[atom] = place(*(atoms[x] for x in before[:3]), *map(float, before[3:]))
        if last:
            atoms["OXT"] = place(n, ca, c, 1.25, 117, psi)
        for atom, at in atoms.items():
            x, y, z = at
            lines.append(
                f"ATOM  {len(lines) + 1:5d}  {atom:<3s} {name} {chain}{i + 1:4d}    {x:8.3f}{y:8.3f}{z:8.3f}"
                f"  1.00  0.00          {atom[0]:>2s}"
            )
        if not last:
            n = place(n, ca, c, 1.329, 116.2, psi)
            ca = place(atoms["CA"], c, n, 1.458, 121.7, 180.0)
            c = place(atoms["C"], n, ca, 1.525, 111.2, shape[i + 1][0])
    return "\n".join([*lines, "TER", "END", ""])


def ideal() -> Path:
    """A protein-like peptide of 232 residues: helices and strands in turn, joined by turns of four residues."""
    sequence, shape = "", []
    for i in range(8):
        helix = i % 2 == 0
        sequence += ("ALEKLLKAVEKFLASLKEVLKAEL" if helix else "SVKVEVLFVKSVEVKVLSVKVEVF") + "GSPGK"
        shape += [HELIX if helix else STRAND] * 24 + [(-70.0, 140.0), (-60.0, -30.0), (-65.0, 140.0)]
        shape += [(80.0, 20.0), (-90.0, 0.0)]
    path = OUT / "peptide.pdb"
    path.write_text(peptide(sequence, shape))
    return path


def main() -> None:
    OUT.mkdir(exist_ok=True)
    protein = pliant.load(sys.argv[1] if len(sys.argv) > 1 else ideal()).with_fixed_base()
    end = protein.end_effectors[0]
    torsions = [
        name for name, kind in zip(protein.joint_names, protein.joint_types, strict=True) if kind == "hinge"
    ]
    print(f"{protein.name}: {protein.body_count} rigid groups, {len(torsions)} torsions; '{end}' is pulled")

    start = protein.reference_poses[protein.body_index(end), :3, 3]
    away = start - protein.reference_poses[0, :3, 3]
    force = FORCE * away / np.linalg.norm(away)
    adaptive, active = pull(protein, end, force, TOLERANCE)
    exact, _ = pull(protein, end, force, 1e-12)
    moved, missed = (
        np.linalg.norm(exact.pose(end)[:3, 3] - place) for place in (start, adaptive.pose(end)[:3, 3])
    )
    print(
        f"it moves by {1e3 * moved:.1f} pm in {STEPS} steps, "
        f"or {1e3 * missed:.1f} pm less if only what matters is computed:"
    )
    print(f"{len(active[0])} joints in the first step, {len(active[-1])} in the last")
    coordinate = [protein.joint_coordinates(protein.joint_index(name)).start for name in torsions]
    turns = []
    for simulation in (adaptive, exact):
        turned = np.abs(np.degrees(simulation.q - protein.reference))[coordinate]
        turns.append(dict(zip(torsions, turned.tolist(), strict=True)))
    for kind in ("phi", "psi", "chi"):
        largest = max((name for name in torsions if f":{kind}" in name), key=turns[1].__getitem__)
        print(f"{kind}: up to {turns[1][largest]:.3f} degrees, of {largest}")
    draw(protein, turns[0], turns[1], active)
    print(f"The picture is {OUT / 'protein.png'}.")


def pull(
    protein: pliant.Mechanism, end: str, force: np.ndarray, tolerance: float
) -> tuple[pliant.QuasistaticSimulation, list[list[str]]]:
    """The protein pulled from rest, and the joints that were computed in each step."""
    simulation = pliant.QuasistaticSimulation(
        protein, STEP, gravity=(0, 0, 0), tolerance=tolerance, measure="world"
    )
    simulation.apply_wrench(end, force=force)
    active = []
    for _ in range(STEPS):
        simulation.step()
        active.append(list(simulation.active))
    return simulation, active


def draw(
    protein: pliant.Mechanism, turn: dict[str, float], exact: dict[str, float], active: list[list[str]]
) -> None:
    """How far torsions turn along the chain, and which are computed from step to step."""
    residues = list(dict.fromkeys(name.rpartition(":")[0] for name in turn))
    number = {name: i + 1 for i, name in enumerate(residues)}

    def place(name: str) -> int:
        return number[name.rpartition(":")[0]]

    figure = Figure(figsize=(11, 6.2), dpi=100)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for kind, colour, marker in (("psi", "#3566c4", "o"), ("phi", "#d9822b", "s"), ("chi", "#2a9d8f", "^")):
        names = [name for name in turn if f":{kind}" in name]
        upper.semilogy(
            [place(x) for x in names], [exact[x] for x in names], ".", color="#c9ced6", markersize=3
        )
        names = [name for name in names if turn[name] > 0]
        upper.semilogy(
            [place(x) for x in names],
            [turn[x] for x in names],
            marker,
            color=colour,
            markersize=3.5,
            label=kind,
        )
    upper.set_ylim(1e-7 * max(exact.values()), 3 * max(exact.values()))
    upper.set_ylabel("turned by (degrees)")
    upper.set_title(
        f"{protein.name}: torsions after a pull at the last residue (grey: all computed)", fontsize=10
    )
    upper.legend(frameon=False, loc="upper left")
    for side, colour in ((False, "#444444"), (True, "#2a9d8f")):
        points = [
            (place(name) + 0.4 * side, step + 1)
            for step, names in enumerate(active)
            for name in names
            if name in turn and (":chi" in name) == side
        ]
        if points:
            label = "side chain" if side else "backbone"
            lower.plot(*zip(*points, strict=True), ".", color=colour, markersize=2.5, label=label)
    lower.set_xlabel("residue")
    lower.set_ylabel("step")
    lower.set_title("Joints computed in each step", fontsize=10)
    lower.legend(frameon=False, loc="upper left", markerscale=3)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(OUT / "protein.png")


if __name__ == "__main__":
    main()

"""An arch of rigid links with springs between them, on two hinged feet, of which one slides against a spring.

Energy over the links' angles, its gradient and Hessian by hand, in dense numpy: equilibria of the symmetric path at a
given height of the crown, where their load has extrema, and where the arch may sway to a side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from oracles.one_variable import root


@dataclass
class Arch:
    """An even number of links of one length along a half sine.

    Attributes:
        angle: of the links to the horizontal, counterclockwise, without a load, rad, (links,).
        length: of a link, m.
        bending: stiffness of the springs between links, N m/rad.
        thrust: stiffness of the sliding foot, N/m.
        share: of the load that pushes each inner node down, (links - 1,); all of it at the crown by default.
    """

    angle: np.ndarray
    length: float
    bending: float
    thrust: float
    share: np.ndarray

    @staticmethod
    def sine(links: int, rise: float, bending: float, thrust: float, share=None) -> Arch:
        """Span 1 m, links of one length; `bending` is that of the arch, N m², `thrust` of its foot, N/m."""

        def nodes(length):
            """Nodes on the curve, each at this distance from the one before, from the left foot to the crown."""
            at = [np.zeros(2)]
            for _ in range(links // 2):
                x = at[-1][0]

                def off(next_x, at=at):
                    step = np.array((next_x, rise * np.sin(np.pi * next_x))) - at[-1]
                    return np.hypot(*step) - length

                end = root(off, x, x + length)
                at.append(np.array((end, rise * np.sin(np.pi * end))))
            return np.array(at)

        longest = np.hypot(1, np.pi * rise) / links
        length = root(lambda size: nodes(size)[-1, 0] - 0.5, 0.9 / links, longest)
        left = np.diff(nodes(length), axis=0)
        angle = np.arctan2(left[:, 1], left[:, 0])
        if share is None:
            share = np.eye(links - 1)[links // 2 - 1]
        return Arch(np.append(angle, -angle[::-1]), length, bending / length, thrust, share)

    def nodes(self, angle) -> np.ndarray:
        """Feet, inner nodes and crown, (links + 1, 2)."""
        steps = self.length * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])

    def energy(self, angle, load: float) -> float:
        bend = np.diff(angle) - np.diff(self.angle)
        give = self.nodes(angle)[-1, 0] - self.nodes(self.angle)[-1, 0]
        heights = self.nodes(angle)[1:-1, 1]
        return 0.5 * self.bending * bend @ bend + 0.5 * self.thrust * give**2 + load * self.share @ heights

    def derivatives(self, angle, load: float, lift: float) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the energy minus `lift` times the height of the right foot."""
        n, size = len(angle), self.length
        bends = np.diff(np.eye(n), axis=0)
        give = self.nodes(angle)[-1, 0] - self.nodes(self.angle)[-1, 0]
        above = np.append(
            np.cumsum(self.share[::-1])[::-1], 0.0
        )  # share of the load on the nodes a link lifts
        vertical = load * above - lift
        across = -size * np.sin(angle)
        gradient = self.bending * bends.T @ (bends @ (angle - self.angle)) + self.thrust * give * across
        gradient += vertical * size * np.cos(angle)
        hessian = self.bending * bends.T @ bends + self.thrust * np.outer(across, across)
        hessian -= np.diag(self.thrust * give * size * np.cos(angle) + vertical * size * np.sin(angle))
        return gradient, hessian

    def symmetric(self, height: float, start=None) -> tuple[np.ndarray, float, float]:
        """Angles, load and dload/dheight of the symmetric equilibrium with the crown at a height, by Newton's method.

        Half of the load stands on the right foot: `lift` is half of the total.
        """
        n = len(self.angle)
        mirror = np.vstack([np.eye(n // 2), -np.eye(n // 2)[::-1]])  # all angles from those of the left half
        half, load = (self.angle[: n // 2], 0.0) if start is None else (start[0][: n // 2], start[1])
        matrix = np.zeros((n // 2 + 1, n // 2 + 1))
        for _ in range(60):
            angle = mirror @ half
            gradient, hessian = self.derivatives(angle, load, 0.5 * load * self.share.sum())
            more, _ = self.derivatives(angle, load + 1.0, 0.5 * (load + 1.0) * self.share.sum())
            unit = mirror.T @ (more - gradient)
            rise = self.length * np.cos(half)
            matrix = np.block([[mirror.T @ hessian @ mirror, unit[:, None]], [rise[None], np.zeros((1, 1))]])
            off = np.append(mirror.T @ gradient, self.length * np.sin(half).sum() - height)
            step = np.linalg.solve(matrix, -off)
            half, load = half + step[:-1], load + step[-1]
            if np.abs(step[:-1]).max() < 1e-14:
                break
        slope = np.linalg.solve(matrix, np.append(np.zeros(n // 2), 1.0))[-1]
        return mirror @ half, float(load), float(slope)

    def sway_stiffness(self, angle, load: float) -> float:
        """Smallest eigenvalue of the Hessian along motions to a side that leave the right foot on its level."""
        n = len(angle)
        sides = np.vstack([np.eye(n // 2), np.eye(n // 2)[::-1]]) / np.sqrt(2)
        _, hessian = self.derivatives(angle, load, 0.5 * load * self.share.sum())
        level = null_space((np.cos(angle) @ sides)[None])
        return float(np.linalg.eigvalsh(level.T @ sides.T @ hessian @ sides @ level)[0])

    def loads(self, steps: int = 200) -> tuple[list[float], list[float]]:
        """Extrema of the load, and loads at which the arch may sway, along the symmetric path to its mirror image."""
        crown = float(self.nodes(self.angle)[len(self.angle) // 2, 1])
        heights = np.linspace(crown, -1.2 * crown, steps)
        states = [self.symmetric(heights[0])]
        for height in heights[1:]:
            states.append(self.symmetric(height, states[-1]))

        def roots(value):
            found, known = [], [value(state) for state in states]
            for i in np.flatnonzero(np.sign(known[1:]) != np.sign(known[:-1])).tolist():
                at = root(lambda h, i=i: value(self.symmetric(h, states[i])), *heights[i : i + 2])
                found.append(self.symmetric(at, states[i])[1])
            return found

        return roots(lambda s: s[2]), roots(lambda s: self.sway_stiffness(*s[:2]))

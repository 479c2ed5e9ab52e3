"""Plane geometry of a stage: outlines of the floor and of obstacles, and how far a path stays from them."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keystride.robot.description import Floats

CIRCLE_SIDES = 24
TOUCHING = 1e-9  # m

Complexes = NDArray[np.complex128]


def outline(corners: ArrayLike) -> Floats:
    """Return (N, 2) corners to the (N, 2, 2) edges of the polygon, the last one back to the first corner."""
    begin = np.asarray(corners, dtype=np.float64)
    return np.stack([begin, np.roll(begin, -1, axis=0)], axis=1)


def circle(center: ArrayLike, radius: float) -> Floats:
    """Return (CIRCLE_SIDES, 2) corners of a polygon around a circle, so that nothing of the circle is outside."""
    angle = 2 * np.pi * np.arange(CIRCLE_SIDES) / CIRCLE_SIDES
    around = radius / np.cos(np.pi / CIRCLE_SIDES)
    return np.asarray(center, dtype=np.float64) + around * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def area(corners: ArrayLike) -> float:
    """Area of a polygon without crossing edges."""
    (x, y), (next_x, next_y) = outline(corners).transpose(1, 2, 0)
    return float(abs(np.sum(x * next_y - next_x * y)) / 2)


def crossing_edges(corners: ArrayLike) -> tuple[int, int] | None:
    """Return the first two edges that are not neighbours and meet all the same, counted from 0."""
    edges = outline(corners)
    apart = distances(edges, edges)  # (N, N)
    neighbours = {1, len(edges) - 1}
    pairs = ((i, j) for i, j in combinations(range(len(edges)), 2) if j - i not in neighbours)
    return next(((i, j) for i, j in pairs if apart[i, j] == 0.0), None)


def inside(points: Floats, corners: ArrayLike) -> NDArray[np.bool_]:
    """Return (P,) whether points (P, 2) are inside a polygon: a ray from there crosses its edges an odd number of times."""
    (x0, y0), (x1, y1) = outline(corners).transpose(1, 2, 0)  # (N,) each
    x, y = points[:, :1], points[:, 1:]  # (P, 1)
    spans = (y0 > y) != (y1 > y)  # (P, N)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
    return (spans & (x < crossing)).sum(axis=1) % 2 == 1


def distances(legs: Floats, edges: Floats) -> Floats:
    """Return (L, M) the least distance between line segments (L, 2, 2) and (M, 2, 2); zero where they meet."""
    a, b = _complex(legs).T[:, :, None]  # (L, 1) each
    c, d = _complex(edges).T[:, None]  # (1, M) each
    ends = (_to_segment(a, c, d), _to_segment(b, c, d), _to_segment(c, a, b), _to_segment(d, a, b))
    crossed = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    least = np.minimum.reduce(ends)
    return np.where(crossed | (least < TOUCHING), 0.0, least)


def _complex(points: Floats) -> Complexes:
    """Return (..., 2) to complex numbers x + iy, with which a dot and a cross product are one multiplication."""
    return points[..., 0] + 1j * points[..., 1]


def _to_segment(point: Complexes, begin: Complexes, end: Complexes) -> Floats:
    along, offset = end - begin, point - begin
    length = np.abs(along) ** 2
    share = np.clip((offset * along.conj()).real / np.where(length > 0, length, 1.0), 0.0, 1.0)
    return np.abs(offset - share * along)


def _side(begin: Complexes, end: Complexes, point: Complexes) -> Floats:
    """Positive to the left of the line, negative to the right."""
    return ((end - begin).conj() * (point - begin)).imag

"""The stage in a script's file, and its plane geometry: outlines of floor and obstacles, and how far a path stays from them."""

from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from keystride.robot.description import Floats

MAX_METRES = 1000.0
MAX_LABEL = 80
MAX_CORNERS = 32  # of the floor, and of each obstacle
MAX_OBSTACLES = 32
MIN_AREA = 1e-4  # m²
CIRCLE_SIDES = 24
TOUCHING_DISTANCE = 1e-9  # m

Complexes = NDArray[np.complex128]


def plain(value: Any) -> Any:
    """Return NumPy arrays and numbers as Python's own."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _printable(text: str | None) -> str | None:
    if text is not None and not text.isprintable():
        raise PydanticCustomError("label", "holds control characters; allowed: printable text in one line")
    return text


Metres = Annotated[float, Field(ge=-MAX_METRES, le=MAX_METRES)]
Label = Annotated[str | None, Field(default=None, max_length=MAX_LABEL), AfterValidator(_printable)]


def _polygon(corners: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    crossing = crossing_edges(corners)
    if crossing is not None:
        message = "edges {first} and {second} meet; allowed: an outline that does not cross or touch itself"
        raise PydanticCustomError("polygon", message, {"first": crossing[0] + 1, "second": crossing[1] + 1})
    if area(corners) < MIN_AREA:
        raise PydanticCustomError("polygon", "has no area; allowed: corners that are not all on one line")
    return corners


def _line(ends: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    if ends[0] == ends[1]:
        raise PydanticCustomError("line", "has no length; allowed: two points that differ")
    return ends


Point = Annotated[tuple[Metres, ...], Field(min_length=2, max_length=2, strict=False), BeforeValidator(plain)]
Corners = Annotated[
    tuple[Point, ...],
    Field(min_length=3, max_length=MAX_CORNERS, strict=False),
    BeforeValidator(plain),
    AfterValidator(_polygon),
]
Line = Annotated[
    tuple[Point, ...], Field(min_length=2, max_length=2, strict=False), BeforeValidator(plain), AfterValidator(_line)
]


class Obstacle(BaseModel):
    """Something that the robot has to stay away from: a circle or a polygon on the ground."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    label: Label = Field(default=None, description="A name to show to people.")
    center: Point | None = Field(default=None, description="[x, y] of a circle's centre in metres; needs a radius.")
    radius: float | None = Field(default=None, ge=0.01, le=MAX_METRES, description="Of the circle, in metres.")
    corners: Corners | None = Field(default=None, description="[x, y] of a polygon's corners in metres, in order.")

    @property
    def outline(self) -> Floats:
        """Return the corners (N, 2), m; those of a circle lie just outside it."""
        if self.corners is not None:
            return np.array(self.corners)
        assert self.center is not None
        assert self.radius is not None
        return circle(self.center, self.radius)

    @model_validator(mode="after")
    def _has_one_shape(self) -> "Obstacle":
        given = tuple(part is not None for part in (self.center, self.radius, self.corners))
        if given not in ((True, True, False), (False, False, True)):
            raise PydanticCustomError("shape", "is not a shape; allowed: either center and radius, or corners")
        return self


class Stage(BaseModel):
    """Where the show takes place, seen from the start of the script: x forward, y left."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    floor: Corners | None = Field(default=None, description="[x, y] of the floor's corners in metres, in order.")
    obstacles: Annotated[tuple[Obstacle, ...], Field(max_length=MAX_OBSTACLES, strict=False)] = Field(
        default=(), description="Circles and polygons to stay away from."
    )
    audience: Line | None = Field(default=None, description="Two ends of the line behind which the audience is.")

    @model_validator(mode="after")
    def _holds_something(self) -> "Stage":
        if self.floor is None and not self.obstacles and self.audience is None:
            raise PydanticCustomError("nothing", "is empty; needs one or more of floor, obstacles, audience")
        return self


def outline(corners: ArrayLike) -> Floats:
    """Return the edges (N, 2, 2) of a polygon with these corners (N, 2); the last edge leads back to the first corner."""
    begin = np.asarray(corners, dtype=np.float64)
    return np.stack([begin, np.roll(begin, -1, axis=0)], axis=1)


def circle(center: ArrayLike, radius: float) -> Floats:
    """Return the corners (CIRCLE_SIDES, 2) of a polygon that contains the whole circle."""
    angle = 2 * np.pi * np.arange(CIRCLE_SIDES) / CIRCLE_SIDES
    around = radius / np.cos(np.pi / CIRCLE_SIDES)
    return np.asarray(center, dtype=np.float64) + around * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def area(corners: ArrayLike) -> float:
    """Return the area of a polygon without crossing edges."""
    (x, y), (next_x, next_y) = outline(corners).transpose(1, 2, 0)
    return float(abs(np.sum(x * next_y - next_x * y)) / 2)


def crossing_edges(corners: ArrayLike) -> tuple[int, int] | None:
    """Return the first two edges, counted from 0, that meet without being neighbours."""
    edges = outline(corners)
    apart = distances(edges, edges)  # (N, N)
    neighbours = {1, len(edges) - 1}
    pairs = ((i, j) for i, j in combinations(range(len(edges)), 2) if j - i not in neighbours)
    return next(((i, j) for i, j in pairs if apart[i, j] == 0.0), None)


def inside(points: Floats, corners: ArrayLike) -> NDArray[np.bool_]:
    """Return (P,) whether points (P, 2) are inside a polygon: a ray from such a point crosses an odd number of edges."""
    (x0, y0), (x1, y1) = outline(corners).transpose(1, 2, 0)  # (N,) each
    x, y = points[:, :1], points[:, 1:]  # (P, 1)
    spans = (y0 > y) != (y1 > y)  # (P, N)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = x0 + (y - y0) * (x1 - x0) / (y1 - y0)
    return (spans & (x < crossing)).sum(axis=1) % 2 == 1


def distances(legs: Floats, edges: Floats) -> Floats:
    """Return the smallest distances (L, M) between line segments (L, 2, 2) and (M, 2, 2); zero where they meet."""
    a, b = _complex(legs).T[:, :, None]  # (L, 1) each
    c, d = _complex(edges).T[:, None]  # (1, M) each
    ends = (_to_segment(a, c, d), _to_segment(b, c, d), _to_segment(c, a, b), _to_segment(d, a, b))
    crossed = (_side(a, b, c) * _side(a, b, d) < 0) & (_side(c, d, a) * _side(c, d, b) < 0)
    least = np.minimum.reduce(ends)
    return np.where(crossed | (least < TOUCHING_DISTANCE), 0.0, least)


def _complex(points: Floats) -> Complexes:
    """Return points (..., 2) as complex numbers x + iy; one multiplication then gives dot and cross product."""
    return points[..., 0] + 1j * points[..., 1]


def _to_segment(point: Complexes, begin: Complexes, end: Complexes) -> Floats:
    along, offset = end - begin, point - begin
    length = np.abs(along) ** 2
    share = np.clip((offset * along.conj()).real / np.where(length > 0, length, 1.0), 0.0, 1.0)
    return np.abs(offset - share * along)


def _side(begin: Complexes, end: Complexes, point: Complexes) -> Floats:
    """Return positive values for points to the left of a line, negative ones for those to the right."""
    return ((end - begin).conj() * (point - begin)).imag

"""What happens in a clip, frame by frame: stand, walk, trot, canter, turn, jump, sit, lie, rear, paw_up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.motion.clip import CLIP_FPS, Clip
from keystride.motion.signals import (
    Flags,
    airborne_frames,
    clip_feet,
    foot_clearance,
    gaussian_smooth,
    stretches,
    without_short,
)
from keystride.robot.description import Floats, Robot

TAGS: tuple[str, ...] = ("stand", "walk", "trot", "canter", "turn", "jump", "sit", "lie", "rear", "paw_up")
STILL, WALK, TROT, CANTER, TURN, JUMP, SIT, LIE, REAR, PAW = range(len(TAGS))

Labels = NDArray[np.intp]
Segment = tuple[int, int, str]  # first frame, one past the last, tag


@dataclass(frozen=True)
class TagSettings:
    still: float = 0.12  # m/s
    trot: float = 0.75  # m/s: Froude number 0.19, where dogs change from walk to trot
    canter: float = 1.9  # m/s
    turn: float = 0.7  # rad/s, at speeds below turn_speed
    turn_speed: float = 0.45  # m/s
    low: float = 0.215  # m, height of a hip that does not stand
    upright: float = 0.30  # rad of pitch in sitting
    rear: float = 0.35  # rad of pitch in rearing
    raised: float = 0.07  # m under a raised paw
    flight_rise: float = 0.03  # m that the base rises in a flight, over where it takes off and lands, to be a jump
    least_seconds: float = 0.3


TAG_DEFAULTS = TagSettings()


def label_frames(clip: Clip, robot: Robot, settings: TagSettings = TAG_DEFAULTS) -> Labels:
    """Return (T,) one index of TAGS for each frame; later rules override earlier ones."""
    speed = gaussian_smooth(np.linalg.norm(clip.base_linear_velocity[:, :2], axis=-1), 8.0)
    turning = np.abs(gaussian_smooth(clip.base_angular_velocity[:, 2], 8.0))
    feet = clip_feet(clip, robot)
    height = foot_clearance(feet, robot)  # (T, 4)
    front, rear = _ends(clip, robot)
    pitch = np.arcsin(np.clip((front - rear) / (2 * robot.legs[0].hip_in_base[0]), -1, 1))  # nose up is positive
    slow = speed < settings.still

    labels = np.full(len(clip), STILL)
    labels[~slow] = WALK
    labels[speed > settings.trot] = TROT
    labels[speed > settings.canter] = CANTER
    labels[(turning > settings.turn) & (speed < settings.turn_speed)] = TURN
    labels[(rear < settings.low) & (pitch > settings.upright)] = SIT
    labels[(rear < settings.low) & (front < settings.low) & (pitch < settings.upright)] = LIE
    labels[_paw_up(height, settings) & (speed < 2 * settings.still)] = PAW
    labels[(pitch > settings.rear) & (height[:, :2].min(axis=1) > settings.raised)] = REAR
    labels[_jumping(clip, feet, robot, settings)] = JUMP
    return labels


def segments_of(labels: Labels, settings: TagSettings = TAG_DEFAULTS) -> list[Segment]:
    """Return segments of one tag each; short ones are merged into the one before, except jumps and raised paws."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    starts = [0, *edges.tolist()]
    stops = [*edges.tolist(), len(labels)]
    found: list[Segment] = []
    for start, stop in zip(starts, stops, strict=True):
        tag = TAGS[int(labels[start])]
        brief = (stop - start) / CLIP_FPS < settings.least_seconds and tag not in ("jump", "paw_up")
        if found and (brief or found[-1][2] == tag):
            found[-1] = (found[-1][0], stop, found[-1][2])
        else:
            found.append((start, stop, tag))
    return found


def tags_of(segments: list[Segment], least_seconds: float = 0.5) -> list[str]:
    """Return the tags that hold for a while, longest first; a jump always counts."""
    seconds = {tag: sum(stop - start for start, stop, one in segments if one == tag) / CLIP_FPS for tag in TAGS}
    held = [tag for tag in TAGS if seconds[tag] >= least_seconds or (tag == "jump" and seconds[tag] > 0)]
    return sorted(held, key=lambda tag: -seconds[tag])


def tag_metadata(clip: Clip, robot: Robot, corrections: Sequence[Segment] = ()) -> dict[str, Any]:
    """Return tags and segments for a clip's metadata; manual corrections take precedence."""
    labels = label_frames(clip, robot)
    for first, last, tag in corrections:
        labels[max(first, 0) : max(last, 0)] = TAGS.index(tag)
    segments = segments_of(labels)
    return {"tags": tags_of(segments), "segments": [list(segment) for segment in segments]}


def _ends(clip: Clip, robot: Robot) -> tuple[Floats, Floats]:
    """Return the heights of the front and rear hip axes, (T,) m each."""
    reach = robot.legs[0].hip_in_base[0]
    along = geometry.rotate(clip.base_orientation, np.tile([reach, 0.0, 0.0], (len(clip), 1)))[:, 2]
    return clip.base_position[:, 2] + along, clip.base_position[:, 2] - along


def _paw_up(height: Floats, settings: TagSettings) -> Flags:
    """Return where one front foot is high and the other on the ground."""
    up = (height[:, :2] > settings.raised) & (height[:, 1::-1] < 0.02)
    one: Flags = np.any(up, axis=1)
    return without_short(one, 12, gap=3)


def _jumping(clip: Clip, feet: Floats, robot: Robot, settings: TagSettings) -> Flags:
    """Return flights in which the base rises and falls, with take-off and landing. Flights of a gallop are flat."""
    flags = np.zeros(len(clip), dtype=bool)
    height = clip.base_position[:, 2]
    for first, last in stretches(without_short(airborne_frames(feet, robot), 3)):
        rise = height[first:last].max() - max(height[first], height[last - 1])
        if rise > settings.flight_rise:
            flags[max(first - 10, 0) : last + 10] = True
    return flags

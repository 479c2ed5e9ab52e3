"""BVH files of a quadruped: parsed, retargeted, and cut by the selection list."""

from dataclasses import replace
from pathlib import Path

from keystride.motion.capture import Animal, Capture
from keystride.motion.clip import Clip, make_clip
from keystride.motion.importers.bvh import parse_bvh
from keystride.motion.importers.selection import Selection, corrections_in, kept_parts, part_names
from keystride.motion.importers.skeleton import Skeleton, capture_from_bvh
from keystride.motion.retargeting.fitting import Take
from keystride.motion.retargeting.retarget import frame_rate, length_scale, retarget, scaled_points
from keystride.reading import read_text
from keystride.robot.description import Robot


def read_capture(path: Path, name: str, skeleton: Skeleton) -> Capture:
    return capture_from_bvh(name, parse_bvh(read_text(path)), skeleton)


def read_animal(path: Path, name: str, robot: Robot, skeleton: Skeleton, selection: Selection) -> list[Take]:
    if any(cut.clip == name and cut.frames is None for cut in selection.cuts):
        return []
    capture = read_capture(path, name, skeleton)
    take = retarget(capture, robot)
    rate = frame_rate(capture)
    parts = kept_parts(selection, name, len(take.clip), rate)
    edits = [cut.model_dump(exclude={"clip"}) for cut in selection.cuts if cut.clip == name]
    facts = {"skeleton": skeleton.name, "scale": length_scale(capture), "frames_per_source_frame": rate, "cuts": edits}
    return [
        _part(
            take,
            part,
            (first, last),
            robot,
            {"edits": {**facts, "first_frame": first}, "tags_by_hand": corrections_in(selection, name, first, rate)},
        )
        for part, (first, last) in zip(part_names(name, len(parts)), parts, strict=True)
    ]


def _part(take: Take, name: str, span: tuple[int, int], robot: Robot, metadata: dict[str, object]) -> Take:
    first, last = span
    clip = replace(sliced(take.clip, name, first, last, robot), metadata=metadata)
    return Take(clip, take.residual[first:last], take.clamped[first:last])


def sliced(clip: Clip, name: str, first: int, last: int, robot: Robot) -> Clip:
    """Some frames of a clip as a clip of its own; the place where it starts is left alone."""
    rows = slice(first, last)
    return make_clip(name, robot, clip.base_position[rows], clip.base_orientation[rows], clip.joint_angles[rows])


def animal_of(clip: Clip, folder: Path, skeleton: Skeleton) -> Animal | None:
    """The animal that a clip was retargeted from, at the clip's frames, if its file is in the folder."""
    source, first = Path(str(clip.metadata.get("source", ""))), clip.metadata.get("edits", {}).get("first_frame")
    path = folder / source.name
    if not source.name or not path.is_file() or not isinstance(first, int) or first < 0:
        return None
    capture = read_capture(path, clip.name, skeleton)
    return Animal(scaled_points(capture.bones, capture)[first : first + len(clip)], capture.parents)

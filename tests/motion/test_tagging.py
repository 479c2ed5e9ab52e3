import numpy as np

from keystride import geometry
from keystride.motion.clip import Clip, make_clip, mirror_clip
from keystride.motion.tagging import TAGS, label_frames, segments_of, tag_metadata, tags_of
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, joints_from_feet, standing_height

HEIGHT = float(standing_height(GO2, GO2.stance))
FRAMES = 100


def posed(height: float = HEIGHT, pitch: float = 0.0, speed: float = 0.0, feet: Floats | None = None) -> Clip:
    """A rigid pose carried along; feet in the base frame. Pitch is positive nose up."""
    position = np.tile([0.0, 0.0, height], (FRAMES, 1))
    position[:, 0] = speed * np.arange(FRAMES) / 50
    turn = geometry.from_roll_pitch_yaw(np.tile([0.0, -pitch, 0.0], (FRAMES, 1)))
    joints = GO2.stance if feet is None else joints_from_feet(GO2, feet)[0]
    return make_clip("posed", GO2, position, turn, np.tile(joints, (FRAMES, 1)))


def on_ground(height: float, pitch: float, lifted: float = 0.0) -> Floats:
    """Feet below the hips of a pitched base, on the ground; the front left one lifted."""
    hips = feet_from_joints(GO2, GO2.stance) * [1, 1, 0]
    turn = geometry.from_roll_pitch_yaw(np.array([0.0, -pitch, 0.0]))
    world = geometry.rotate(np.tile(turn, (4, 1)), hips) * [1, 1, 0] + [0, 0, GO2.foot_radius - height]
    world[0, 2] += lifted
    return geometry.rotate_inverse(np.tile(turn, (4, 1)), world)


def tag_of(clip: Clip) -> str:
    labels = label_frames(clip, GO2)
    return TAGS[int(np.bincount(labels).argmax())]


def test_speeds_name_the_gaits():
    assert tag_of(posed()) == "stand"
    assert tag_of(posed(speed=0.4)) == "walk"
    assert tag_of(posed(speed=1.2)) == "trot"
    assert tag_of(posed(speed=2.5)) == "canter"


def test_heights_and_pitch_name_the_postures():
    assert tag_of(posed(0.13, feet=on_ground(0.13, 0.0))) == "lie"
    assert tag_of(posed(0.24, 0.6, feet=on_ground(0.24, 0.6))) == "sit"
    assert tag_of(posed(HEIGHT, feet=on_ground(HEIGHT, 0.0, lifted=0.12))) == "paw_up"
    assert tag_of(posed(0.24, 0.6, feet=on_ground(0.24, 0.6, lifted=0.12))) == "paw_up"
    assert tag_of(posed(0.4, 0.9)) == "rear"


def test_turning_on_the_spot_is_a_turn():
    still = posed()
    turn = geometry.from_yaw(np.arange(FRAMES) / 50)
    assert tag_of(make_clip("turn", GO2, still.base_position, turn, still.joint_angles)) == "turn"


def test_a_flight_that_rises_is_a_jump():
    still = posed()
    position = still.base_position.copy()
    time = np.arange(20) / 50
    position[40:60, 2] += 0.5 * 9.81 * time * (time[-1] - time) + 0.05
    labels = label_frames(make_clip("hop", GO2, position, still.base_orientation, still.joint_angles), GO2)
    assert {TAGS[label] for label in labels[40:60]} == {"jump"}
    assert TAGS[labels[10]] == "stand"


def test_a_mirror_image_has_the_same_tags():
    clip = posed(HEIGHT, feet=on_ground(HEIGHT, 0.0, lifted=0.12))
    np.testing.assert_array_equal(label_frames(clip, GO2), label_frames(mirror_clip(clip, GO2), GO2))


def test_segments_cover_the_clip_and_short_ones_are_absorbed():
    labels = np.array([0] * 50 + [1] * 5 + [0] * 45 + [2] * 40)  # stand, a blink of walk, stand, trot
    segments = segments_of(labels)
    assert segments == [(0, 100, "stand"), (100, 140, "trot")]
    assert tags_of(segments) == ["stand", "trot"]


def test_a_hand_has_the_last_word():
    found = tag_metadata(posed(), GO2, corrections=[(20, 60, "paw_up")])
    assert found["segments"] == [[0, 20, "stand"], [20, 60, "paw_up"], [60, 100, "stand"]]
    assert found["tags"] == ["stand", "paw_up"]

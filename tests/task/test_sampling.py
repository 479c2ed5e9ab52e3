"""Keyframes that an episode asks for."""

import numpy as np
import pytest

from keystride import geometry
from keystride.keyframes.goals import COMPONENTS, goal_errors, used
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.library import Library
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height
from keystride.task.config import EverydayRanges, KeyframeRanges, TaskConfig
from keystride.task.sampling import LEAP_HEIGHT, RARE_POSTURES, Episodes, EpisodeSampler, backward_frames


def draw(library: Library, count: int = 400, share: float = 0.0, seed: int = 0, **settings) -> Episodes:
    return EpisodeSampler(GO2, library, TaskConfig(**settings)).draw(np.random.default_rng(seed), count, share)


def test_a_robot_that_moves_like_the_clip_meets_dataset_keyframes(library):
    """From the frame it starts in, the clip's own motion has no error at the keyframe's time."""
    episodes = draw(library, goals="pose", reference_start=1.0)
    goals, start = episodes.goals, episodes.start
    asked = used(goals)
    assert asked[:, 0].all()
    speed = np.linalg.norm(start.linear_velocity, axis=1)
    straight = np.isclose(speed, 1.4)  # constant velocity: where the robot gets is start + velocity x time
    reached = start.position[:, None] + start.linear_velocity[:, None] * goals.step[..., None] * 0.02
    error = np.linalg.norm((reached - goals.position)[..., :2], axis=-1)
    assert straight.sum() > 20
    assert error[straight][asked[straight]] == pytest.approx(0.0, abs=1e-9)


def test_dataset_keyframes_turn_with_the_robot(library):
    """Seen from the robot, the goals of an arc lie on its side of the arc, whichever way the episode faces."""
    episodes = draw(library, goals="pose", reference_start=1.0)
    start = episodes.start
    error = goal_errors(episodes.goals, start.position, start.orientation, start.joint_angles)
    turning = np.abs(start.angular_velocity[:, 2]) > 0.5
    side = np.sign(start.angular_velocity[turning, 2])
    assert (np.sign(error[turning, 0, 1]) == side).all()
    assert np.allclose(error[turning, 0, 5], 0.6 * side * episodes.goals.step[turning, 0] * 0.02, atol=1e-6)


def test_intervals_counts_and_steps_lie_in_the_papers_ranges(library):
    goals = draw(library, share=1.0).goals
    intervals = np.diff(goals.step, axis=1, prepend=0)
    assert intervals.min() == 25
    assert intervals.max() == 50
    assert set(used(goals).sum(axis=1)) == {1, 2, 3, 4, 5}


def test_random_keyframes_keep_the_papers_radius_and_turn(library):
    episodes = draw(library, share=1.0, goals="pose", ranges=KeyframeRanges(count=(5, 5)))
    goals = episodes.goals
    places = np.concatenate([episodes.start.position[:, None, :2], goals.position[..., :2]], axis=1)
    yaws = np.concatenate([geometry.yaw_of(episodes.start.orientation)[:, None], goals.angles[..., 2]], axis=1)
    strides = np.diff(places, axis=1)
    radius = np.linalg.norm(strides, axis=-1)
    direction = geometry.wrap(np.arctan2(strides[..., 1], strides[..., 0]) - yaws[:, :-1])
    turn = geometry.wrap(np.diff(yaws, axis=1))
    assert 0.5 <= radius.min() < 0.51
    assert 0.99 < radius.max() <= 1.0
    for angle in (direction, turn):
        assert 1.0 < np.abs(angle).max() <= np.pi / 3 + 1e-9


@pytest.fixture(scope="module")
def leaping() -> Library:
    from keystride.motion.authored.catalogue import authored_clips

    return Library(GO2, authored_clips(GO2))


def test_leaps_come_as_often_as_asked(leaping):
    high = LEAP_HEIGHT * float(standing_height(GO2, GO2.stance))

    def share_of_leaps(asked: float) -> float:
        return float(
            (draw(leaping, 2000, ranges=KeyframeRanges(leap_share=asked)).goals.position[:, 0, 2] > high).mean()
        )

    usual = share_of_leaps(0.0)
    assert usual < 0.02
    assert share_of_leaps(0.3) == pytest.approx(0.3 + 0.7 * usual, abs=0.04)
    assert share_of_leaps(1.0) == 1.0


def test_some_leaps_start_in_flight(leaping):
    """From its take-off velocity a robot in flight gets there by itself."""
    episodes = draw(leaping, 2000, ranges=KeyframeRanges(leap_share=1.0))
    seconds = episodes.goals.step[:, 0] * 0.02
    flying = (seconds < 0.16) & (episodes.start.linear_velocity[:, 2] > 0.5)
    assert 20 < flying.sum() < 500
    rise = episodes.start.linear_velocity[:, 2] * seconds - 9.81 / 2 * seconds**2
    reached = episodes.start.position[:, 2] + rise
    assert np.abs(reached - episodes.goals.position[:, 0, 2])[flying].mean() < 0.04


def test_the_keyframe_of_a_leap_is_its_apex(leaping):
    """Anywhere else in a flight, the height asked for would not tell whether to push off now or earlier."""
    episodes = draw(leaping, 500, ranges=KeyframeRanges(leap_share=1.0))
    frames = episodes.frame + episodes.goals.step[:, 0]
    around = leaping.frames.position[frames[:, None] + np.arange(-10, 11), 2]
    assert (around.max(axis=1) - leaping.frames.position[frames, 2]).max() < 0.005  # m


def test_a_library_without_leaps_draws_none(library):
    assert draw(library, ranges=KeyframeRanges(leap_share=1.0)).goals.position[..., 2].max() < 0.4


def test_default_starts_stand_still(library):
    start = draw(library, reference_start=0.0).start
    assert np.allclose(start.joint_angles, GO2.stance)
    assert np.allclose(start.linear_velocity, 0.0)


def test_the_share_of_reference_starts(library):
    start = draw(library, count=4000).start
    standing = (start.joint_angles == GO2.stance).all(axis=1).mean()
    assert standing == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("goals", "bits"), [("position", (1, 0, 0, 0, 0)), ("pose", (1, 1, 1, 1, 1))])
def test_fixed_subsets(library, goals, bits):
    drawn = draw(library, goals=goals).goals
    assert (drawn.presence[used(drawn)] == np.array(bits, dtype=bool)).all()


def test_any_subset_comes_up_and_absent_components_are_zero(library):
    goals = draw(library, count=3000, goals="any").goals
    first = goals.presence[:, 0]
    assert len({tuple(row) for row in first}) == 2 ** len(COMPONENTS) - 1
    assert (goals.posture[~goals.presence[..., 4]] == 0).all()
    assert (goals.position[~goals.presence[..., 0]] == 0).all()


def test_the_same_seed_draws_the_same(library):
    one, two = draw(library, seed=3, share=0.5), draw(library, seed=3, share=0.5)
    assert np.array_equal(one.goals.position, two.goals.position)
    assert np.array_equal(one.start.orientation, two.start.orientation)


def test_rare_postures_come_as_often_as_asked_and_all_of_them(leaping):
    sampler = EpisodeSampler(GO2, leaping, TaskConfig(ranges=KeyframeRanges(posture_share=0.5)))
    episodes = sampler.draw(np.random.default_rng(0), 4000, 0.0)
    assert episodes.shown.mean() == pytest.approx(0.5, abs=0.03)
    target = (episodes.frame + episodes.goals.step[:, 0])[episodes.shown]
    tags = [tag for tag in RARE_POSTURES if tag in leaping.tagged]
    shares = [np.isin(target, leaping.tagged[tag]).mean() for tag in tags]
    assert min(shares) > 0.5 / len(tags)
    assert np.array_equal(leaping.clip[episodes.frame[episodes.shown]], leaping.clip[target])


def test_walking_backwards_has_its_own_share():
    library = Library(GO2, [as_clip(GO2, name, CATALOGUE[name](GO2)) for name in ("walk_back", "bow", "trot")])
    back = backward_frames(library)
    assert set(library.clip[back]) == {0, 3}  # the clip and its mirror image
    ranges = KeyframeRanges(posture_share=0.7, backward_share=0.3)
    config = TaskConfig(goals="pose", ranges=ranges, demonstrate=("backward",))
    episodes = EpisodeSampler(GO2, library, config).draw(np.random.default_rng(0), 1000, 0.0)
    target = episodes.frame + episodes.goals.step[:, 0]
    assert np.isin(target, back).mean() == pytest.approx(0.3, abs=0.05)
    assert np.array_equal(episodes.shown, np.isin(target, back))
    behind = goal_errors(
        episodes.goals, episodes.start.position, episodes.start.orientation, episodes.start.joint_angles
    )[:, 0, 0]
    assert (behind[np.isin(target, back)] < 0).mean() > 0.95


def everyday(library: Library, count: int = 3000, **ranges) -> Episodes:
    wanted = KeyframeRanges(everyday_share=1.0, count=(5, 5), everyday=EverydayRanges(**ranges))
    return draw(library, count, goals="pose", ranges=wanted)


def legs_of(episodes: Episodes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, distance, direction from the heading before, and turn of every leg of the way."""
    goals, start = episodes.goals, episodes.start
    seconds = np.diff(goals.step, axis=1, prepend=0) * 0.02
    places = np.concatenate([start.position[:, None, :2], goals.position[..., :2]], axis=1)
    yaws = np.concatenate([geometry.yaw_of(start.orientation)[:, None], goals.angles[..., 2]], axis=1)
    way = np.diff(places, axis=1)
    direction = geometry.wrap(np.arctan2(way[..., 1], way[..., 0]) - yaws[:, :-1])
    return seconds, np.linalg.norm(way, axis=-1), direction, geometry.wrap(np.diff(yaws, axis=1))


def test_everyday_keyframes_cover_what_people_ask_for(library):
    seconds, distance, direction, turn = legs_of(everyday(library))
    going = distance > 0.05
    assert 0.3 <= seconds.min() < 0.32
    assert 2.9 < seconds.max() <= 3.0
    back, aside = going & (np.cos(direction) < -0.9), going & (np.abs(np.sin(direction)) > 0.9)
    assert back.mean() > 0.03
    assert aside.mean() > 0.03
    assert (~going & (np.abs(turn) > np.radians(150))).any()  # about face on the spot
    assert (~going & (np.abs(turn) < 1e-9)).mean() > 0.1  # staying
    assert (going & (np.abs(turn) < 1e-9)).mean() > 0.1  # yaw kept


def test_everyday_keyframes_leave_enough_time(library):
    ranges = EverydayRanges()
    seconds, distance, direction, turn = legs_of(everyday(library))
    assert (distance <= ranges.speed_ahead * seconds + 1e-9).all()
    back = np.cos(direction) < 0
    assert (distance[back] <= ranges.speed_back * seconds[back] + 1e-9).all()
    assert (np.abs(turn) <= ranges.turn_rate * seconds + 1e-9).all()


def test_standing_keyframes_ask_for_postures_that_stand(library):
    goals = everyday(library, standing_share=1.0).goals
    heights = standing_height(GO2, goals.posture)
    assert np.allclose(heights, goals.position[..., 2], atol=1e-6)
    assert heights.min() == pytest.approx(0.2, abs=0.01)  # from 0.6 to 1.08 times the Go2's 0.333 m
    assert heights.max() == pytest.approx(0.36, abs=0.01)
    chosen = everyday(library, standing_share=1.0, height=(0.25, 0.3)).goals.position[..., 2]
    assert 0.25 <= chosen.min() < chosen.max() <= 0.3


def test_tails_are_mostly_short(library):
    tails = EpisodeSampler(GO2, library, TaskConfig(tail_steps=(5, 150))).tails(np.random.default_rng(0), 4000)
    assert (tails.min(), tails.max()) == (5, 150)
    assert np.median(tails) == pytest.approx(np.sqrt(5 * 150), rel=0.1)

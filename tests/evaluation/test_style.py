import numpy as np
import pytest

from keystride.evaluation.setting import Contender, Libraries, Setting
from keystride.evaluation.style import SEGMENT_FRAMES, frechet_distance, motion_of_clips, style
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


def sample(columns: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(500, columns)) @ np.diag([1.0, 2.0, 0.5])[:columns]


def test_a_distribution_is_at_no_distance_from_itself() -> None:
    assert frechet_distance(sample(), sample()) == pytest.approx(0.0, abs=1e-6)


def test_a_shift_is_as_far_as_it_goes() -> None:
    assert frechet_distance(sample(), sample() + np.array([3.0, 4.0, 0.0])) == pytest.approx(5.0)


def test_along_one_axis_the_difference_of_deviations_counts() -> None:
    """Stretching the second column from deviation s to 3 s, uncorrelated with the others: 2 s."""
    values = sample()
    values -= values.mean(axis=0)
    values, _ = np.linalg.qr(values)  # columns of one norm, uncorrelated
    deviation = values[:, 1].std(ddof=1)
    assert frechet_distance(values, values * [1.0, 3.0, 1.0]) == pytest.approx(2 * deviation)


def test_the_order_does_not_matter() -> None:
    other = sample() @ np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 2.0]]) + 0.5
    assert frechet_distance(sample(), other) == pytest.approx(frechet_distance(other, sample()))


def test_stretches_of_clips_do_not_run_over_their_ends(libraries: Libraries) -> None:
    motion = motion_of_clips(GO2, libraries.dataset, np.random.default_rng(0), 300)
    assert motion.feet.shape == (SEGMENT_FRAMES, 300, 4, 3)
    jumps = np.abs(np.diff(motion.joint_angles, axis=0)).max()
    assert jumps < 0.5  # rad a frame: from one clip into the next it would be a leap


def test_policy_and_clips_stand_side_by_side(standing: Policy, libraries: Libraries) -> None:
    rows = style(Setting(GO2, Contender("standing", standing), libraries, episodes=8)).rows
    by_who = {who: {row.metric: row.mean for row in rows if row.scenario == who} for who in ("policy", "clips")}
    assert by_who["policy"].keys() == by_who["clips"].keys()
    assert by_who["clips"]["frechet_velocities_rad_s"] < by_who["policy"]["frechet_velocities_rad_s"]
    assert by_who["clips"]["clearance_m"] > 0.02

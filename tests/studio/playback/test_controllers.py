"""Who drives the robot."""

import numpy as np
import pytest

from keystride.keyframes.goals import empty_goals
from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import (
    STAND_STILL,
    PolicyError,
    StandStill,
    choices,
    describe_controller,
    first_choice,
    follows,
    load_controller,
)


def test_somebody_can_always_be_chosen():
    assert choices()[-1] == STAND_STILL
    assert first_choice() in choices()
    assert isinstance(load_controller(STAND_STILL, GO2), StandStill)


def test_standing_still_is_the_stance_for_any_number_of_robots():
    controller = load_controller(STAND_STILL, GO2)
    action = controller.resting_action(np.tile(GO2.stance, (3, 1)))
    targets, action = controller.step(None, empty_goals(3, 1), np.zeros(3), action)
    np.testing.assert_array_equal(targets, np.tile(GO2.stance, (3, 1)))
    assert action.shape == (3, 12)
    assert follows(controller) == ()
    assert "no keyframe moves it" in describe_controller(controller)


def test_a_policy_that_is_not_there_is_told():
    with pytest.raises(PolicyError, match="no policy 'nowhere'"):
        load_controller("nowhere", GO2)

"""A forecast is a count over roll-outs; the latest question wins."""

import queue
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.playback.controllers import STAND_STILL, StandStill, load_controller
from keystride.studio.playback.forecast import (
    BATCHES,
    ROUND,
    Chances,
    Forecast,
    Question,
    RolloutBatch,
    Rounds,
    Withdrawn,
    roll_out,
    summarize,
)
from keystride.studio.playback.forecast_process import Forecaster, ProcessQueue

HERE_AND_THERE = Script(
    keyframes=(Keyframe(time=0.3, position=(0.0, 0.0), posture="stand"), Keyframe(time=0.6, position=(1.0, 0.0)))
)


def question() -> Question:
    return Question(GO2, HERE_AND_THERE, STAND_STILL, 0.8)


def test_who_stands_meets_what_is_here_and_misses_what_is_there():
    chances = roll_out(question(), StandStill(GO2), 16, seed=3)
    assert chances.shares == [1.0, 0.0]
    assert chances.falls == 0
    assert chances.rollouts == 16
    np.testing.assert_allclose(chances.path, 0.0, atol=0.1)


def test_the_same_seed_gives_the_same_answer():
    tight = Question(GO2, Script(keyframes=(Keyframe(time=0.1, posture="crouch"),)), STAND_STILL, 0.8)
    first, second = (roll_out(tight, StandStill(GO2), 8, seed=5).met for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_batches_add_up():
    batches = [RolloutBatch(seed, 8) for seed in (1, 2)]
    for batch in batches:
        batch.run(question(), StandStill(GO2))
    total = summarize(batches, HERE_AND_THERE)
    assert total.rollouts == 16
    assert total.shares == [1.0, 0.0]
    assert total.errors is not None
    assert total.errors[1, 0] == pytest.approx(1.0, abs=0.15)  # m from where it stands
    assert np.isnan(total.errors[0, 1])  # nothing asked for the roll


@pytest.mark.parametrize("spacing", [0.5, 1.4])  # s; the second is filled with waypoints
def test_after_an_edit_only_what_differs_is_simulated_again(spacing: float):
    policy = load_controller("go2-position", GO2)
    count = round(12.0 / spacing) + 1
    long = Script(
        keyframes=tuple(
            Keyframe(time=round(spacing * i, 2), position=(0.2 * spacing * i, 0.0)) for i in range(1, count)
        )
    )
    last = long.keyframes[-1].model_copy(update={"position": (2.0, 0.5)})
    edited = Script(keyframes=(*long.keyframes[:-1], last))
    batch, fresh = RolloutBatch(0, 2), RolloutBatch(0, 2)
    batch.run(Question(GO2, long, "go2-position", 0.8), policy)
    whole = batch.steps_simulated
    batch.run(Question(GO2, edited, "go2-position", 0.8), policy)
    assert 0 < batch.steps_simulated < 0.75 * whole
    fresh.run(Question(GO2, edited, "go2-position", 0.8), policy)
    np.testing.assert_array_equal(batch.errors, fresh.errors)
    batch.run(Question(GO2, edited, "go2-position", 0.8), policy)
    assert batch.steps_simulated == 0


def test_a_question_that_is_no_longer_asked_is_dropped():
    with pytest.raises(Withdrawn):
        roll_out(question(), StandStill(GO2), 4, seed=0, asked=lambda: False)


def test_answers_come_in_rounds_and_end_with_all_of_them():
    answers: queue.SimpleQueue[tuple[Question, Chances]] = queue.SimpleQueue()
    rounds = Rounds(load_controller, lambda asked, chances: answers.put((asked, chances)))
    try:
        asked = question()
        rounds.ask(asked)
        found = [answers.get(timeout=120.0) for _ in range(BATCHES + 1)]  # one more with the tips
    finally:
        rounds.close()
    assert [chances.rollouts for _, chances in found] == [ROUND, *(ROUND * (i + 1) for i in range(BATCHES))]
    assert all(of is asked for of, _ in found)


def test_every_missed_keyframe_gets_suggestions():
    far = [Keyframe(time=0.2 * i, position=(0.6 * (i % 2), 0.0), yaw=0.0) for i in (1, 2, 3)]  # out, back, out
    asked = Question(GO2, Script(keyframes=tuple(far)), STAND_STILL, 0.8)
    answers: queue.SimpleQueue[Chances] = queue.SimpleQueue()
    rounds = Rounds(load_controller, lambda _, chances: answers.put(chances))
    try:
        rounds.ask(asked)
        chances = answers.get(timeout=120.0)
        while len({tip.row for tip in chances.tips}) < 2:
            chances = answers.get(timeout=120.0)
    finally:
        rounds.close()
    assert chances.rollouts == ROUND * BATCHES
    assert sorted(Forecast.from_chances((7, 8, 9), chances).tips) == [7, 9]


def test_another_process_answers_the_latest_question():
    answers: queue.SimpleQueue[tuple[Question, Chances]] = queue.SimpleQueue()
    forecaster = Forecaster(lambda asked, chances: answers.put((asked, chances)))
    try:
        questions = [question() for _ in range(20)]
        for asked in questions:
            forecaster.ask(asked)
        last, chances = answers.get(timeout=120.0)
        while last is not questions[-1]:
            last, chances = answers.get(timeout=120.0)
    finally:
        forecaster.close()
    assert chances.shares == [1.0, 0.0]


def test_the_other_process_simulates_the_robot_of_the_question():
    high = Script(keyframes=(Keyframe(time=0.3, position=(0.0, 0.0, 0.333)),))
    low = replace(GO2, legs=tuple(replace(leg, stance=(0.0, 1.3, -2.4)) for leg in GO2.legs))
    answers: queue.SimpleQueue[tuple[Question, Chances]] = queue.SimpleQueue()
    forecaster = Forecaster(lambda asked, chances: answers.put((asked, chances)))
    shares = {}
    try:
        for robot in (GO2, low):
            forecaster.ask(asked := replace(question(), robot=robot, script=high))
            answered = None
            while answered is not asked:
                answered, chances = answers.get(timeout=120.0)
                shares[robot.stance[1]] = chances.shares
    finally:
        forecaster.close()
    assert shares == {GO2.stance[1]: [1.0], 1.3: [0.0]}


def test_a_process_that_comes_too_late_starts_when_another_one_ends():
    processes, started = ProcessQueue(2), []

    def enter(name: str, *, starts: bool = True) -> Callable[[], bool]:
        def start() -> bool:
            started.append(name)
            return starts

        processes.enter(start)
        return start

    enter("a")
    enter("b")
    third, fourth = enter("c"), enter("d", starts=False)
    enter("e")
    processes.enter(third)  # asking again does not change the order
    assert started == ["a", "b"]
    processes.leave()
    assert started == ["a", "b", "c"]
    processes.leave()  # d has given up meanwhile, so e takes its place
    assert started == ["a", "b", "c", "d", "e"]
    last = enter("f")
    processes.withdraw(last)
    processes.withdraw(fourth)
    processes.leave()
    assert started[-1] == "e"


def test_a_queued_forecast_is_answered_once_another_one_is_closed():
    answers: queue.SimpleQueue[tuple[Question, Chances]] = queue.SimpleQueue()
    processes = ProcessQueue(1)
    first, second = (Forecaster(lambda *answer: answers.put(answer), processes) for _ in range(2))
    asked = question(), question()
    first.ask(asked[0])
    second.ask(asked[0])
    second.ask(asked[1])  # still queued: the latest question is the one that is sent
    assert (first.queued, second.queued) == (False, True)
    first.close()
    while answers.get()[0] is not asked[1]:
        pass
    assert not second.queued
    second.close()
    first.close()
    third = Forecaster(lambda *answer: answers.put(answer), processes)  # the place is free again
    third.ask(question())
    assert not third.queued
    third.close()

"""Physics under a controller, with a play head: what is at the head is always what the script leads to.

Everything is deterministic, so going back is reading the tape, and going ahead is simulating. There is no clock here.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from keystride.evaluation.episodes import NEVER, Controller, Rollout, episode_ends
from keystride.evaluation.errors import keyframe_errors, met
from keystride.evaluation.starts import exact_stance
from keystride.keyframes.goals import Goals, empty_goals
from keystride.physics.cpu import CpuSimulator
from keystride.physics.simulator import State
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2
from keystride.studio.tape import Pose, Tape
from keystride.task.ends import fallen

SNAPSHOT_STEPS = 50
IDLE_END = 100  # control steps to play when there is no keyframe
HERE = np.arange(1)


@dataclass
class _Moment:
    """Where the simulation can be taken up again."""

    snapshot: dict[str, object]
    action: Floats


@dataclass
class Player:
    """One robot. `head` is the control step that is shown; `goals` is a batch of one."""

    controller: Controller
    friction: float
    goals: Goals = field(default_factory=lambda: empty_goals(1, 1))
    head: int = 0
    pushes: dict[int, Floats] = field(default_factory=dict)  # control step, (3,) m/s
    edited_on_the_way: bool = False  # the tape was made with more than one script

    def __post_init__(self) -> None:
        self._simulator = CpuSimulator(GO2, 1, threads=1)
        self._simulator.set_friction(self.friction)
        self.rewind()

    @property
    def recorded(self) -> int:
        """The last control step that has been simulated."""
        return self.tape.last

    @property
    def end(self) -> int:
        """The control step at which the pass is over: a second after the last keyframe."""
        return int(episode_ends(self.goals)[0]) if self.goals.presence.any() else IDLE_END

    @property
    def finished(self) -> bool:
        return self.head >= self.end

    @property
    def waiting(self) -> bool:
        """The head is ahead of what has been simulated."""
        return self.recorded < min(self.head, self.end)

    def rewind(self) -> None:
        """Forget the tape, not the pushes."""
        self.tape, self._kept, self.fell = Tape(), {}, NEVER
        self._verdicts: dict[int, bool] = {}
        self.edited_on_the_way = False
        self._simulator.reset(HERE, exact_stance(GO2))
        self._state = self._simulator.state()
        self._action = self.controller.resting_action(self._state.joint_angles)
        self._keep()

    def restart(self) -> None:
        """A new pass from the start."""
        self.head = 0
        self.pushes.clear()
        self.rewind()

    def set_goals(self, goals: Goals | None, *, live: bool) -> None:
        """Another script. Live, what happened up to the head stays; otherwise the past is simulated anew."""
        self.goals = empty_goals(1, 1) if goals is None else goals
        self._verdicts.clear()
        if live:
            self._cut(self.head)
            self.edited_on_the_way = True
        else:
            self.rewind()

    def set_controller(self, controller: Controller) -> None:
        self.controller = controller
        self.rewind()

    def set_friction(self, friction: float) -> None:
        self.friction = friction
        self._simulator.set_friction(friction)
        self.rewind()

    def seek(self, step: int) -> None:
        self.head = max(step, 0)

    def catch_up(self, seconds: float) -> bool:
        """Simulate towards the head, for about that long; whether it was reached."""
        deadline = time.perf_counter() + seconds
        while self.waiting and time.perf_counter() < deadline:
            self._simulate()
        return not self.waiting

    def push(self, velocity: Floats) -> None:
        """Shove the robot at the head: (3,) m/s is added to its base. What was simulated after that is void."""
        step = min(self.head, self.end)
        self._cut(step)
        self.pushes = {at: push for at, push in self.pushes.items() if at <= step}
        self.pushes[step] = self.pushes.get(step, np.zeros(3)) + velocity

    def verdicts(self) -> list[bool | None]:
        """For each keyframe whether it was met; None for those that the head or the simulation has not come to."""
        reached = min(self.head, self.recorded)
        return [self._verdict(row) if step <= reached else None for row, step in enumerate(self.goals.step[0].tolist())]

    def pose(self) -> Pose:
        return self.tape.pose(self.head)

    def rollout(self) -> Rollout:
        """What was simulated so far, as evaluation sees it."""
        return Rollout(self.goals, self.tape.trace(), np.array([self.end]), np.array([self.fell]))

    def _verdict(self, row: int) -> bool:
        if row not in self._verdicts:
            pose, step = self.tape.pose(int(self.goals.step[0, row])), int(self.goals.step[0, row])
            errors = keyframe_errors(
                self.goals[:, row : row + 1], pose.position[None], pose.orientation[None], pose.joints[None]
            )
            upright = self.fell == NEVER or step < self.fell
            self._verdicts[row] = upright and bool(met(errors)[0, 0])
        return self._verdicts[row]

    def _simulate(self) -> None:
        step = self.recorded
        targets, action = self.controller.step(self._state, self.goals, np.array([step]), self._action)
        self.tape.choose(targets[0], action[0])
        self._action = action
        self._advance(targets)
        if self.recorded % SNAPSHOT_STEPS == 0:
            self._kept[self.recorded] = _Moment(self._simulator.snapshot(), self._action)

    def _advance(self, targets: Floats) -> None:
        push = self.pushes.get(self.recorded)
        if push is not None:
            self._simulator.push(HERE, push[None], np.zeros((1, 3)))
        self._see(self._simulator.advance(targets))

    def _see(self, state: State) -> None:
        if not state.diverged[0]:  # a simulation that blew up stays at its last sane state
            self._state = state
        self.tape.append(self._state)
        if self.fell == NEVER and (state.diverged[0] or fallen(self._state)[0]):
            self.fell = self.recorded

    def _keep(self) -> None:
        self.tape.append(self._state)
        self._kept[0] = _Moment(self._simulator.snapshot(), self._action)

    def _cut(self, step: int) -> None:
        """Take up the simulation at a step that lies on the tape, or leave it as it is."""
        if step >= self.recorded:
            return
        self._verdicts.clear()
        start = max(kept for kept in self._kept if kept <= step)
        self._kept = {kept: moment for kept, moment in self._kept.items() if kept <= start}
        self._simulator.restore(self._kept[start].snapshot)
        self._action = self._kept[start].action
        self._state = self._simulator.state()
        again = self.tape.column("joint_targets")[start:step].copy()
        actions = self.tape.column("action")[start:step].copy()
        self.tape.cut(start)
        self.fell = self.fell if self.fell <= start else NEVER
        for targets, action in zip(again, actions, strict=True):
            self.tape.choose(targets, action)
            self._action = action[None]
            self._advance(targets[None])

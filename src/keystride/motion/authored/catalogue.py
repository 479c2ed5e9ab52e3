"""The catalogue of built-in clips: their names and what is performed in them."""

from collections.abc import Callable

import numpy as np

from keystride.keyframes.postures import Footing
from keystride.motion.authored.acts import Jump, Key, perform_act, perform_jump
from keystride.motion.authored.locomotion import CANTER_GAIT, PACE_GAIT, TROT_GAIT, WALK_GAIT, Gait, Passage, perform
from keystride.motion.authored.performance import Performance, as_clip, join_performances, stand_still
from keystride.motion.clip import Clip
from keystride.robot.description import Robot

Director = Callable[[Robot], Performance]


def authored_clips(robot: Robot) -> list[Clip]:
    """Make every clip of the catalogue. The result is always the same; it takes some seconds."""
    return [as_clip(robot, name, direct(robot)) for name, direct in CATALOGUE.items()]


def _going(*score: Passage) -> Director:
    return lambda robot: perform(robot, *score)


def _ramp(gait: Gait, *paces: tuple[float, float]) -> Director:
    """Go straight on for some seconds at each of several speeds (s, m/s)."""
    return _going(*(Passage(gait, seconds, speed) for seconds, speed in paces))


def _acting(*keys: Key, back: float = 0.8) -> Director:
    return lambda robot: perform_act(robot, *keys, back=back)


def _jumping(*jumps: Jump) -> Director:
    return lambda robot: join_performances(*(perform_jump(robot, jump) for jump in jumps))


def _after(*parts: Director) -> Director:
    return lambda robot: join_performances(*(direct(robot) for direct in parts))


DASHES = ((1.0, 0.0), (1.3, 0.0), (0.9, 0.9), (1.1, -0.6), (-0.6, 0.0))  # m/s, rad/s


def _wandering(gait: Gait, seed: int, passages: int, most: float) -> Director:
    """Return turns, side steps and changes of speed in a random but reproducible order."""
    random = np.random.default_rng(seed)
    slow, fast = gait.speed[0], most
    score = []
    for _ in range(passages):
        forward = random.uniform(slow, fast) * random.choice([1.0, 1.0, 1.0, 1.0, -0.5])
        calm = 1.0 - 0.5 * abs(forward) / fast  # the faster, the straighter
        sideways, turn = random.uniform(-0.25, 0.25) * calm, random.uniform(-1.2, 1.2) * calm
        score.append(Passage(gait, random.uniform(1.2, 2.6), forward, sideways, turn, ramp=random.uniform(0.7, 1.1)))
    return _going(*score)


GAITS: dict[str, Director] = {
    "walk_slow": _going(Passage(WALK_GAIT, 7.0, 0.25)),
    "walk": _going(Passage(WALK_GAIT, 8.0, 0.5)),
    "walk_fast": _going(Passage(WALK_GAIT, 7.0, 0.8)),
    "walk_ramp": _ramp(WALK_GAIT, (3.0, 0.25), (3.0, 0.5), (4.0, 0.8), (3.0, 0.3)),
    "walk_back": _going(Passage(WALK_GAIT, 6.0, -0.35)),
    "walk_sideways": _going(Passage(WALK_GAIT, 5.0, 0.0, 0.2), Passage(WALK_GAIT, 4.0, 0.0, -0.25, ramp=1.2)),
    "walk_diagonal": _going(Passage(WALK_GAIT, 5.0, 0.4, 0.15), Passage(WALK_GAIT, 4.0, 0.4, -0.15)),
    "walk_turn": _going(Passage(WALK_GAIT, 6.0, turn=0.7)),
    "walk_arc": _going(Passage(WALK_GAIT, 6.0, 0.5, turn=0.5), Passage(WALK_GAIT, 6.0, 0.5, turn=-0.6)),
    "trot_slow": _going(Passage(TROT_GAIT, 6.0, 0.5)),
    "trot": _going(Passage(TROT_GAIT, 8.0, 0.9)),
    "trot_fast": _going(Passage(TROT_GAIT, 7.0, 1.4, ramp=1.4)),
    "trot_ramp": _ramp(TROT_GAIT, (3.0, 0.5), (4.0, 1.0), (4.0, 1.5), (3.0, 0.8)),
    "trot_back": _going(Passage(TROT_GAIT, 5.0, -0.6)),
    "trot_sideways": _going(Passage(TROT_GAIT, 4.0, 0.0, 0.4), Passage(TROT_GAIT, 4.0, 0.0, -0.4, ramp=1.2)),
    "trot_diagonal": _going(Passage(TROT_GAIT, 4.0, 0.7, 0.3), Passage(TROT_GAIT, 4.0, 0.7, -0.3)),
    "trot_turn": _going(Passage(TROT_GAIT, 5.0, turn=1.4)),
    "trot_arc": _going(Passage(TROT_GAIT, 5.0, 0.9, turn=0.8), Passage(TROT_GAIT, 5.0, 1.0, turn=-0.8)),
    "trot_arc_tight": _going(Passage(TROT_GAIT, 6.0, 0.6, turn=1.3)),
    "trot_dash": _after(*[_going(Passage(TROT_GAIT, 1.2, speed, turn=turn, ramp=0.8)) for speed, turn in DASHES]),
    "trot_short": _after(*[_going(Passage(TROT_GAIT, 1.4, speed, ramp=0.7)) for speed in (0.5, 0.8, 1.1)]),
    "pace": _going(Passage(PACE_GAIT, 6.0, 0.7)),
    "pace_fast": _going(Passage(PACE_GAIT, 5.0, 1.1, ramp=1.2)),
    "canter": _going(Passage(TROT_GAIT, 1.5, 0.9), Passage(CANTER_GAIT, 7.0, 1.4)),
    "canter_fast": _going(
        Passage(TROT_GAIT, 2.0, 1.0), Passage(CANTER_GAIT, 7.0, 1.9, ramp=1.2), Passage(TROT_GAIT, 1.5, 0.9, ramp=1.2)
    ),
    "canter_ramp": _going(
        Passage(TROT_GAIT, 1.2, 0.9),
        Passage(CANTER_GAIT, 3.0, 1.3),
        Passage(CANTER_GAIT, 4.0, 2.0),
        Passage(CANTER_GAIT, 3.0, 1.6),
    ),
    "canter_arc": _going(Passage(TROT_GAIT, 1.5, 0.9), Passage(CANTER_GAIT, 6.0, 1.4, turn=0.5)),
    "gaits_up_and_down": _going(
        Passage(WALK_GAIT, 3.0, 0.5),
        Passage(TROT_GAIT, 4.0, 1.1, ramp=1.0),
        Passage(CANTER_GAIT, 4.0, 1.7, ramp=1.0),
        Passage(TROT_GAIT, 3.0, 1.0, ramp=1.2),
        Passage(WALK_GAIT, 3.0, 0.5, ramp=1.0),
    ),
    "slalom": _going(*(Passage(TROT_GAIT, 2.2, 0.9, turn=side * 1.0) for side in (1, -1, 1, -1, 1))),
    "walk_wander": _wandering(WALK_GAIT, seed=1, passages=14, most=0.8),
    "trot_wander": _wandering(TROT_GAIT, seed=2, passages=20, most=1.2),
    "trot_wander_fast": _wandering(TROT_GAIT, seed=3, passages=20, most=1.6),
    "trot_turn_fast": _going(Passage(TROT_GAIT, 4.0, turn=1.7)),
    "spin": _going(Passage(WALK_GAIT, 3.5, turn=2.2)),
    "spin_fast": _going(Passage(WALK_GAIT, 4.0, turn=3.0)),
}


def _leaning(forward: float) -> Footing:
    """Move the trunk forward over feet that stay, m."""
    spot = (-forward, 0.0, 0.0)
    return Footing(0.3, 0.0, 80.0 * forward, spot, spot, spot, spot)


CROUCHED = Footing(height=0.22)

DIRECTED_CLIPS: dict[str, Director] = {
    "stand": lambda robot: stand_still(robot, 4.0),
    "sit": _acting(Key("sit", 1.2, 2.0, "sit"), back=1.2),
    "sit_quick": _acting(Key("sit", 0.8, 1.2, "sit"), back=0.9),
    "lie": _acting(Key("lie", 1.4, 2.0, "lie"), back=1.4),
    "sit_lie": _acting(
        Key("sit", 1.2, 0.8, "sit"),
        Key("stand", 1.0, 0.2, "stand"),
        Key("lie", 1.0, 1.5, "lie"),
        back=1.2,
    ),
    "bow": _acting(Key("bow", 0.9, 1.2, "bow"), back=0.9),
    "bow_play": _acting(
        Key("bow", 0.7, 0.4, "bow"),
        Key("look_down", 0.6, 0.0, "bow"),
        Key("bow", 0.6, 0.8, "bow"),
        back=0.8,
    ),
    "stretch": _acting(Key("stretch", 1.6, 1.2, "stretch"), back=1.6),
    "paw_up": _acting(Key("paw_up", 1.6, 1.5, "paw_up"), back=1.6),
    "paw_up_quick": _acting(Key("paw_up", 1.1, 0.8, "paw_up"), back=1.1),
    "sit_paw_up": _acting(
        Key("sit", 1.2, 0.6, "sit"),
        Key("sit_paw_up", 1.3, 1.5, "paw_up"),
        Key("sit", 1.3, 0.6, "sit"),
        back=1.2,
    ),
    "crouch": _acting(Key("crouch", 0.9, 1.0, "crouch")),
    "squats": _acting(*(Key(pose, 0.7, 0.2, "crouch") for pose in (CROUCHED, "tall", CROUCHED, "tall"))),
    "look_around": _acting(
        Key("look_up", 0.8, 0.8, "look"),
        Key("look_down", 1.0, 0.8, "look"),
        Key(CROUCHED, 0.8, 0.5, "look", yaw=0.3),
        Key(CROUCHED, 1.0, 0.5, "look", yaw=-0.3),
    ),
    "sway": _acting(
        Key("lean_left", 0.8, 0.3, "sway"),
        Key("lean_right", 1.2, 0.3, "sway"),
        Key(_leaning(0.05), 1.0, 0.3, "sway"),
        Key(_leaning(-0.05), 1.0, 0.3, "sway"),
    ),
}

JUMPS: dict[str, Director] = {
    "jump": _jumping(Jump(), Jump(apex=0.55)),
    "jump_low": _jumping(Jump(apex=0.45), Jump(apex=0.45, lower=0.4, recover=0.4)),
    "hop": _jumping(Jump(apex=0.4), Jump(apex=0.42, forward=0.3)),
    "hop_forward": _jumping(Jump(apex=0.42, forward=0.5), Jump(apex=0.45, forward=0.8, lean=0.15, overrun=0.0)),
    "jump_forward": _jumping(Jump(forward=0.7), Jump(forward=1.1)),
    "jump_far": _jumping(Jump(forward=1.4, apex=0.5), Jump(forward=1.2, pose="leap", spin=0.4, apex=0.47)),
    "jump_turn": _jumping(Jump(turn=0.8), Jump(turn=1.5, apex=0.55)),
}

# The motions that examples/jump.yaml and examples/paw_up.yaml take their keyframes from, from time 0 on.
EXAMPLES: dict[str, Director] = {
    "example_jump": _jumping(
        Jump(
            apex=0.45,
            forward=0.9,
            crouch=0.18,
            release=0.3,
            lean=0.15,
            overrun=0.0,
            lead=0.3,
            lower=0.4,
            push=0.325,
            absorb=0.3,
        )
    ),
    "example_paw_up": lambda robot: perform_act(robot, Key("paw_up", 1.0, 0.0, "paw_up"), lead=1.0, back=1.0),
}

STORIES: dict[str, Director] = {
    "walk_sit_walk": _after(
        _going(Passage(WALK_GAIT, 3.0, 0.6)),
        DIRECTED_CLIPS["sit_quick"],
        _going(Passage(WALK_GAIT, 4.0, 0.5, turn=0.4)),
    ),
    "trot_jump_trot": _after(
        _going(Passage(TROT_GAIT, 2.5, 0.7)),
        _jumping(Jump(forward=0.9)),
        _going(Passage(TROT_GAIT, 3.0, 1.1, turn=-0.5)),
    ),
}

CATALOGUE: dict[str, Director] = {**GAITS, **DIRECTED_CLIPS, **JUMPS, **EXAMPLES, **STORIES}

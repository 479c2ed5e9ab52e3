"""The seed corpus: small good files of every kind that keystride reads, written by keystride itself."""

import gzip
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import yaml

from keystride import geometry
from keystride.deploy.log.flight import FlightLog
from keystride.deploy.pose.source import Pose, pose_message
from keystride.files import write_atomically
from keystride.keyframes.files import save_script
from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import Keyframe, Script
from keystride.learner.config import CPU, DiscriminatorConfig, NetworkConfig
from keystride.motion.clip import Clip, make_clip, save_clip
from keystride.motion.importers.relatives import A1, MAX
from keystride.motion.library import save_library
from keystride.policy.bundle import SHIPPED
from keystride.robot.catalogue import robot_text
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, joints_from_feet
from keystride.robot.model import write_png
from keystride.studies.measures import RANDOM_SHARES, result_file
from keystride.studio.document.draft import from_script
from keystride.studio.document.history import Document
from keystride.studio.document.pose_library import PoseLibrary
from keystride.studio.unsaved_work import DraftsFolder, dump
from keystride.training.config import TrainingConfig, plain_config, write_config

FRAMES = 60
BVH_FRAMES = 90  # at 60 per second: a part of under a second would be left out


@dataclass(frozen=True)
class Seed:
    """What a reader is given: a file, or a folder of which one file is mutated."""

    reader: str
    file: str  # the file to mutate, below the seed's folder
    kind: str  # which mutations suit it: text, json, yaml, npz, safetensors, onnx
    share: int  # how often it comes up
    packed: bool = False  # the mutated content is compressed by gzip


SEEDS = {
    "bvh": Seed("mann", "walk.bvh", "text", 10),
    "bvh_packed": Seed("mann", "walk.bvh.gz", "text", 3, packed=True),
    "lifelike": Seed("lifelike", "walk.txt", "json", 8),
    "lifelike_packed": Seed("lifelike", "walk.txt.gz", "json", 2, packed=True),
    "amp": Seed("amp", "walk.json", "json", 8),
    "csv": Seed("csv", "walk.csv", "text", 10),
    "npz": Seed("npz", "walk.npz", "npz", 8),
    "tracking": Seed("npz", "walk.npz", "npz", 8),
    "clip": Seed("clip", "walk.npz", "npz", 8),
    "index": Seed("library", "library/index.json", "json", 10),
    "library_clip": Seed("library", "library/walk.npz", "npz", 5),
    "skeleton": Seed("skeleton", "skeleton.yaml", "yaml", 5),
    "selection": Seed("selection", "selection.yaml", "yaml", 5),
    "script_yaml": Seed("script", "script.yaml", "yaml", 12),
    "script_json": Seed("script", "script.json", "json", 8),
    "upload": Seed("upload", "script.yaml", "yaml", 5),
    "policy": Seed("policy", "policy.onnx", "onnx", 8),
    "critic": Seed("critic", "critic.onnx", "onnx", 4),
    "recipe": Seed("recipe", "recipe.yaml", "yaml", 8),
    "robot": Seed("robot", "robot.yaml", "yaml", 6),
    "robot_model": Seed("robot", "robot.xml", "xml", 10),
    "robot_include": Seed("robot", "legs.xml", "xml", 3),
    "robot_mesh": Seed("robot", "assets/hat.obj", "text", 2),
    "robot_texture": Seed("robot", "assets/skin.png", "text", 1),
    "flight": Seed("flight", "part-00000.npz", "npz", 6),
    "flight_events": Seed("flight", "events.jsonl", "jsonl", 3),
    "flight_about": Seed("flight", "about.json", "json", 2),
    "poses": Seed("poses", ".keystride-poses.json", "json", 4),
    "draft": Seed("draft", ".keystride-drafts/tab.json", "json", 6),
    "page_events": Seed("page_events", "events.json", "json", 2),
    "pose": Seed("pose", "pose.json", "json", 3),
    "config": Seed("bundle", "bundle/config.yaml", "yaml", 8),
    "weights": Seed("bundle", "bundle/weights.safetensors", "safetensors", 5),
    "figures": Seed("pack", "bundle/figures.json", "json", 1),
    "curve": Seed("pack", "bundle/curve.json", "json", 1),
    "notes": Seed("pack", "bundle/notes.md", "text", 1),
    "study_result": Seed("study", "results/run.json", "json", 3),
    "metrics": Seed("curve", "metrics.jsonl", "text", 4),
    "state": Seed("checkpoint", "run/checkpoints/00000001/learner.json", "json", 6),
    "tensors": Seed("checkpoint", "run/checkpoints/00000001/learner.safetensors", "safetensors", 4),
    "own_state": Seed("checkpoint", "run/checkpoints/00000001/process0.json", "json", 4),
    "own_tensors": Seed("checkpoint", "run/checkpoints/00000001/process0.safetensors", "safetensors", 3),
    "run_config": Seed("run", "run/config.yaml", "yaml", 4),
    "run_state": Seed("run", "run/checkpoints/00000001/learner.json", "json", 3),
    "run_best": Seed("run", "run/best/figures.json", "json", 2),
}


def write_seeds(folder: Path, names: tuple[str, ...] = tuple(SEEDS)) -> None:
    """Write the good files of some seeds, each into a folder of its own name."""
    clip = swaying()
    writers = {
        "bvh": lambda place: (place / "walk.bvh").write_text(dog_bvh(BVH_FRAMES)),
        "bvh_packed": lambda place: (place / "walk.bvh.gz").write_bytes(
            gzip.compress(dog_bvh(BVH_FRAMES).encode(), mtime=0)
        ),
        "lifelike": lambda place: (place / "walk.txt").write_text(lifelike_json(clip)),
        "lifelike_packed": lambda place: (place / "walk.txt.gz").write_bytes(
            gzip.compress(lifelike_json(clip).encode(), mtime=0)
        ),
        "amp": lambda place: (place / "walk.json").write_text(amp_json(clip)),
        "csv": lambda place: (place / "walk.csv").write_text(csv_text(clip)),
        "npz": lambda place: save_clip(clip, place / "walk.npz"),
        "tracking": lambda place: tracking_npz(clip, place / "walk.npz"),
        "clip": lambda place: save_clip(clip, place / "walk.npz"),
        "index": lambda place: library(clip, place / "library"),
        "library_clip": lambda place: library(clip, place / "library"),
        "skeleton": lambda place: _copy("mann.yaml", place / "skeleton.yaml"),
        "selection": lambda place: _copy("mann_selection.yaml", place / "selection.yaml"),
        "script_yaml": lambda place: save_script(script(), place / "script.yaml"),
        "script_json": lambda place: save_script(script(), place / "script.json"),
        "upload": lambda place: save_script(script(), place / "script.yaml"),
        "policy": lambda place: shutil.copy(SHIPPED / "go2-pose" / "policy.onnx", place),
        "critic": lambda place: shutil.copy(SHIPPED / "go2-pose" / "critic.onnx", place),
        **dict.fromkeys(
            ("config", "weights", "figures", "curve", "notes"),
            lambda place: shutil.copytree(SHIPPED / "go2-pose", place / "bundle"),
        ),
        "study_result": study_result,
        "metrics": lambda place: (place / "metrics.jsonl").write_text(metrics()),
        "recipe": lambda place: (place / "recipe.yaml").write_text(recipe()),
        "robot": lambda place: (place / "robot.yaml").write_text(robot_text(GO2)),
        **dict.fromkeys(("robot_model", "robot_include", "robot_mesh", "robot_texture"), robot_folder),
        "poses": lambda place: PoseLibrary(place, GO2).save("mine", named_postures(GO2)["sit"]),
        **dict.fromkeys(("flight", "flight_events", "flight_about"), flight),
        "draft": draft,
        "page_events": lambda place: (place / "events.json").write_text(PAGE_EVENTS),
        "pose": lambda place: (place / "pose.json").write_bytes(
            pose_message(Pose(np.array([0.1, 0.2, 0.3]), np.array([1.0, 0, 0, 0]), 5.0, 7))
        ),
        **dict.fromkeys(("state", "tensors", "own_state", "own_tensors"), checkpoint),
        **dict.fromkeys(("run_config", "run_state", "run_best"), run),
    }
    for name in names:
        (folder / name).mkdir(parents=True)
        writers[name](folder / name)


def _copy(name: str, path: Path) -> None:
    from importlib.resources import files

    path.write_bytes((files("keystride.motion") / "data" / name).read_bytes())


def swaying() -> Clip:
    """All feet stand still while the base sways and turns above them."""
    time = np.arange(FRAMES) / 50
    position = np.stack([0.03 * np.sin(2 * time), 0.02 * np.cos(3 * time), 0.30 + 0.01 * np.sin(4 * time)], axis=1)
    orientation = geometry.from_yaw(0.2 * np.sin(time))
    clip = make_clip("walk", GO2, position, orientation, np.zeros((FRAMES, 12)), {"tags": ["stand"], "licence": "MIT"})
    return make_clip("walk", GO2, position, orientation, joints_of(GO2, clip), clip.metadata)


def joints_of(robot: Robot, clip: Clip) -> Floats:
    """Joints with which a robot holds its feet under the Go2's stance."""
    stance = feet_from_joints(GO2, GO2.stance) * [1, 1, 0] + [0, 0, robot.foot_radius]
    local = geometry.rotate_inverse(clip.base_orientation[:, None], stance[None] - clip.base_position[:, None])
    return joints_from_feet(robot, local)[0]


def base_columns(clip: Clip) -> Floats:
    return np.concatenate([clip.base_position, clip.base_orientation[:, [1, 2, 3, 0]]], axis=1)


def csv_text(clip: Clip) -> str:
    table = np.concatenate([base_columns(clip), clip.joint_angles], axis=1)
    return "\n".join(",".join(f"{value:.6f}" for value in row) for row in table) + "\n"


def lifelike_json(clip: Clip) -> str:
    joints = joints_of(MAX, clip) * np.tile([1.0, -1.0, -1.0], 4)
    legs = joints.reshape(-1, 4, 3)[:, [1, 0, 3, 2]].reshape(-1, 12)
    rows = np.concatenate([base_columns(clip), legs], axis=1)
    order = ["FR", "FL", "HR", "HL"]
    return json.dumps({"FrameDuration": 0.02, "LegOrder": order, "Frames": rows.round(6).tolist()})


def amp_json(clip: Clip) -> str:
    joints = joints_of(A1, clip)
    toes = feet_from_joints(A1, joints).reshape(FRAMES, 12)
    rows = np.concatenate([base_columns(clip), joints, toes, np.zeros((FRAMES, 30))], axis=1)
    return json.dumps({"FrameDuration": 0.02, "Frames": rows.round(6).tolist()})


def tracking_npz(clip: Clip, path: Path) -> None:
    bodies, turns = np.zeros((FRAMES, 13, 3)), np.tile([1.0, 0, 0, 0], (FRAMES, 13, 1))
    bodies[:, 0], turns[:, 0] = clip.base_position, clip.base_orientation
    np.savez(path, fps=np.array([50]), joint_pos=clip.joint_angles, body_pos_w=bodies, body_quat_w=turns)


def library(clip: Clip, folder: Path) -> None:
    save_library([clip, replace(clip, name="other")], folder, GO2.name, held_out=["other"])


def script() -> Script:
    return Script(
        keyframes=(
            Keyframe(time=0.5, position=(0.2, 0.0, 0.32), label="first"),
            Keyframe(time=1.5, position=(0.8, 0.3), yaw=30.0, relative=True),
            Keyframe(time=2.5, posture="sit"),
            Keyframe(time=3.5, posture={"FL_calf_joint": -90.0}, roll=5.0, pitch=-5.0),
        )
    )


def metrics() -> str:
    rows = [{"steps": 1000 * i, "seconds": 2.0 * i, "reward/goal": 0.1 * i} for i in range(1, 20)]
    rows[9]["evaluation/random/position"] = 0.4
    return "\n".join(map(json.dumps, rows)) + "\n"


def study_result(place: Path) -> None:
    """What a study keeps of a run."""
    config = TrainingConfig(name="run", runs=place / "runs")
    columns = {"steps": [10.0, 20.0], "distance": [0.4, 0.3], "reward": [0.1, None], "survival": [1.0, 0.9]}
    final = {kind: {"distances": [0.1, 0.2], "falls": 0} for kind in RANDOM_SHARES}
    result = {"settings": plain_config(config), "episodes": 2, "final": final, "curve": columns}
    write_atomically(result_file(config), json.dumps(result))


PAGE_EVENTS = 'keystride:{"session":"abc","events":[[1,"select",[2,3]],[2,"time",0.5],[3,"open","walk.yaml"]]}'


def recipe() -> str:
    """All settings, and two stages that change some."""
    stages = [{"name": "first", "until": 1000, "overrides": {"task": {"randomize": "nothing"}}}, {"name": "second"}]
    settings = {"preset": "single-critic", **plain_config(TrainingConfig(learner=replace(CPU, steps=2000)))}
    return yaml.safe_dump({**settings, "stages": stages}, sort_keys=False)


def robot_folder(place: Path) -> None:
    """A robot of which the model includes its bodies and has a mesh and a texture."""
    model = GO2.model_path.read_text()
    begin, end = model.index('<body name="FL_hip"'), model.index("</body>\n  </worldbody>")
    (place / "legs.xml").write_text(f"<mujocoinclude>\n{model[begin:end]}</mujocoinclude>\n")
    model = (
        f'{model[:begin]}<geom type="mesh" mesh="hat" material="skin" mass="0"/><include file="legs.xml"/>{model[end:]}'
    )
    assets = '<mesh name="hat" file="hat.obj"/><texture name="skin" type="2d" file="skin.png"/>'
    model = model.replace("</asset>", f'{assets}<material name="skin" texture="skin"/></asset>')
    (place / "robot.xml").write_text(model.replace("<compiler ", '<compiler meshdir="assets" texturedir="assets" '))
    (place / "assets").mkdir()
    corners = ["0 0 0", "0.1 0 0", "0 0.1 0", "0 0 0.1"]
    faces = ["1 3 2", "1 2 4", "1 4 3", "2 3 4"]
    (place / "assets" / "hat.obj").write_text("".join([f"v {x}\n" for x in corners] + [f"f {x}\n" for x in faces]))
    write_png(place / "assets" / "skin.png", np.zeros((8, 8, 3), np.uint8))
    (place / "robot.yaml").write_text(robot_text(replace(GO2, model_path=Path("robot.xml"))))


def flight(place: Path) -> None:
    log = FlightLog(place, {"policy": "go2-pose", "script": "walk.yaml"})
    for step in range(FRAMES):
        row = log.row()
        row["time"], row["state"] = 10.0 + 0.002 * step, step // 20
        row["joint_angles"] = row["target"] = GO2.stance
        row["base_position"], row["base_orientation"], row["stiffness"] = (0.0, 0.0, 0.3), (1.0, 0.0, 0.0, 0.0), 30.0
    log.note(10.05, "standing -> running: started")
    log.note(10.1, "running -> holding: the script is over")
    log.close(seconds=600.0)


def draft(place: Path) -> None:
    document = Document(from_script(script(), GO2), "walk.yaml", "0" * 64)
    DraftsFolder(place, GO2).write("tab", dump(document, {"policy": "go2-pose"}))


def run(place: Path) -> None:
    """A run of which a checkpoint and a best policy were written."""
    checkpoint(place)
    folder = place / "run"
    write_config(replace(TrainingConfig(), name="run", runs=place), folder)
    path = folder / "checkpoints" / "00000001" / "learner.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "settings": plain_config(TrainingConfig())}))
    shutil.copytree(path.parent, folder / "best")
    (folder / "best" / "figures.json").write_text(
        json.dumps({"score": 3.5, "steps": 8, "stage": "", "random/yaw": 0.4})
    )


def checkpoint(place: Path) -> None:
    """A run of a tiny network after no training at all."""
    tiny_trainer().save(place / "run" / "checkpoints")


def tiny_trainer():
    from keystride.motion.library import Library
    from keystride.training.build import make_trainer

    network = NetworkConfig(width=8, feedforward=8, mlp=(8,), state_to_mlp=True, critics="shared")
    learner = replace(CPU, environments=2, network=network, discriminator=DiscriminatorConfig(hidden=(4,), replay=16))
    trainer = make_trainer(TrainingConfig(learner=learner), Library(GO2, [swaying()]))
    trainer.iteration = 1
    return trainer


def dog_bvh(frames: int) -> str:
    """A rigid MANN skeleton that stands on straight legs, in centimetres, y up, facing z."""
    limbs = {
        ("LeftShoulder", "LeftHand"): "4.3 0 22",
        ("RightShoulder", "RightHand"): "-4.3 0 22",
        ("LeftUpLeg", "LeftFoot"): "4.8 0 -22",
        ("RightUpLeg", "RightFoot"): "-4.8 0 -22",
    }
    turns = "CHANNELS 3 Zrotation Xrotation Yrotation"
    blocks = [
        f"JOINT {hip}\n{{\nOFFSET {place}\n{turns}\nJOINT {foot}\n{{\nOFFSET 0 -36 0\n{turns}\n"
        "End Site\n{\nOFFSET 0 -2 0\n}\n}\n}\n"
        for (hip, foot), place in limbs.items()
    ]
    root = "HIERARCHY\nROOT Hips\n{\nOFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n"
    row = "0 40 0" + " 0" * 27
    motion = f"MOTION\nFrames: {frames}\nFrame Time: 0.0166667\n" + "\n".join([row] * frames) + "\n"
    return root + "".join(blocks) + "}\n" + motion

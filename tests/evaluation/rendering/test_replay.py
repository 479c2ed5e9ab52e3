import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from keystride.evaluation.recording import Recording, play_script
from keystride.evaluation.rendering.replay import replay_page, robot_shapes
from keystride.keyframes.script import Keyframe, Script
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model

PATIENCE = 120_000  # ms: it draws in software, maybe on a busy machine
LABELS = ("[[script]]", "</script><!-- <script>", '"it\'s" `${1}` \\', "{{label}} {% x %}", "&lt;b&gt; <b>bold</b>")
EVIL = "</script><script>document.title='broken into'</script>"


@pytest.fixture(scope="module")
def recording(standing: Policy) -> Recording:
    keyframes = (
        Keyframe(time=0.5, posture="stand", label="stay"),
        Keyframe(time=1.0, position=(0.6, 0.2, 0.32), yaw=30.0, label=EVIL),
    )
    return play_script(standing, GO2, Script(keyframes=keyframes), title="<b>stay</b>", policy="standing")


@pytest.fixture(scope="module")
def page(browser: Any, recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The replay in a browser, halted at its start."""
    with opened(browser, recording, tmp_path_factory.mktemp("replay")) as page:
        yield page


@contextmanager
def opened(browser: Any, recording: Recording, folder: Path) -> Iterator[Any]:
    from playwright.sync_api import expect

    (folder / "replay.html").write_text(replay_page(recording), encoding="utf-8")
    with closing(browser.new_context(viewport={"width": 900, "height": 560})) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.mishaps = []
        page.on("pageerror", lambda error: page.mishaps.append(str(error)))
        page.on("request", lambda request: page.mishaps.append(request.url) if "http" in request.url else None)
        page.goto(f"file://{folder}/replay.html#t=0")
        expect(page.locator("#clock")).to_have_text("0.00 s", timeout=PATIENCE)
        yield page


def picture(page: Any) -> bytes:
    """After two more frames, by when everything asked for is drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.locator("#view").screenshot()


def test_the_page_asks_nothing_of_the_network(recording: Recording) -> None:
    text = replay_page(recording)
    assert not re.search(r"(src|href)\s*=|https?:|@import|url\(", text)
    assert not re.search(r"\[\[[a-z]+\]\]", text)  # every part was filled in


def test_a_label_cannot_leave_the_data(recording: Recording) -> None:
    text = replay_page(recording)
    assert text.count("</script>") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert data["keyframes"][1]["label"] == EVIL
    assert "<title>&lt;b&gt;stay" in text


@pytest.mark.parametrize("label", LABELS)
def test_the_browser_shows_labels_and_titles_as_they_were_written(
    browser: Any, recording: Recording, label: str, tmp_path: Path
) -> None:
    named = replace(recording, labels=(label, *recording.labels[1:]), title=label)
    with opened(browser, named, tmp_path) as page:
        assert page.mishaps == []
        assert page.title() == f"{label} · Keystride replay"
        assert page.inner_text("h1") == label
        assert label in page.locator("tbody tr").nth(0).inner_text()
        assert page.locator("script").count() == 2


def test_it_runs_without_a_mishap_and_shows_the_table(page: Any) -> None:
    assert page.mishaps == []
    assert page.title().startswith("<b>stay</b>")
    rows = page.locator("tbody tr")
    assert rows.count() == 2
    assert rows.nth(0).locator(".dot.met").count() == 1
    assert rows.nth(1).locator(".dot.missed").count() == 1
    assert "1 of 2 keyframes met" in page.inner_text("#verdict")


def test_the_timeline_and_the_table_move_time(page: Any) -> None:
    from playwright.sync_api import expect

    clock = expect(page.locator("#clock"))  # it reads the text; the page's own rules forbid scripts from outside
    page.locator("tbody tr").nth(1).click()
    clock.to_have_text("1.00 s")
    page.keyboard.press("ArrowLeft")
    clock.to_have_text("0.98 s")
    page.click("#play")
    clock.to_have_text("2.00 s", timeout=PATIENCE)  # it runs to the end and halts there


def test_something_is_drawn_and_the_ghosts_can_be_hidden(page: Any) -> None:
    page.uncheck("#follow")  # else the camera still glides
    page.locator("tbody tr").nth(1).click()
    with_ghosts = picture(page)
    page.uncheck("#ghosts")
    without = picture(page)
    page.check("#ghosts")
    assert len(with_ghosts) > 10_000  # a blank picture is smaller by far
    assert with_ghosts != without
    assert with_ghosts == picture(page)


def test_bodies_in_the_page_are_where_mujoco_puts_them(page: Any) -> None:
    random = np.random.default_rng(0)
    model = load_model(GO2)
    data = mujoco.MjData(model)
    turn = random.normal(size=4)
    data.qpos[:] = [0.3, -0.2, 0.5, *(turn / np.linalg.norm(turn)), *random.uniform(GO2.lower, GO2.upper)]
    mujoco.mj_kinematics(model, data)
    call = "pose => bodyMatrices(JSON.parse(byId('data').textContent).robot.bodies, pose).map(m => Array.from(m))"
    matrices = np.array(page.evaluate(call, data.qpos.tolist()))  # (13, 16) column by column
    assert np.allclose(matrices[:, 12:15], data.xpos[1:], atol=1e-6)
    rotations = matrices.reshape(-1, 4, 4)[:, :3, :3].swapaxes(1, 2)
    assert np.allclose(rotations, data.xmat[1:].reshape(-1, 3, 3), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "size", "volume"),
    [
        ("sphere", [0.5, 0, 0], 4 / 3 * np.pi * 0.5**3),
        ("ellipsoid", [0.5, 0.3, 0.2], 4 / 3 * np.pi * 0.5 * 0.3 * 0.2),
        ("capsule", [0.2, 0.5, 0], np.pi * 0.2**2 * (1.0 + 4 / 3 * 0.2)),
        ("cylinder", [0.2, 0.5, 0], np.pi * 0.2**2 * 1.0),
        ("box", [0.2, 0.3, 0.4], 8 * 0.2 * 0.3 * 0.4),
    ],
)
def test_shapes_are_closed_and_face_outwards(page: Any, kind: str, size: list[float], volume: float) -> None:
    """The signed volume of the triangles is that of the shape, less what corners cut off; normals point away."""
    mesh = page.evaluate("([kind, size]) => BUILDERS[kind](size)", [kind, size])
    vertices = np.array(mesh["vertices"])
    corners = vertices[np.array(mesh["triangles"]).reshape(-1, 3), :3]
    filled = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
    assert 0.93 * volume < filled <= volume * 1.0001
    assert (np.einsum("ij,ij->i", vertices[:, :3], vertices[:, 3:]) >= -1e-9).all()


def test_every_visible_shape_is_there_and_hangs_on_a_body() -> None:
    looks, model = robot_shapes(GO2), load_model(GO2)
    assert len(looks["bodies"]) == 13
    assert len(looks["shapes"]) == int((model.geom_group == 2).sum())
    assert {shape["body"] for shape in looks["shapes"]} == set(range(13))


def test_parents_come_before_children_and_every_joint_once() -> None:
    bodies = robot_shapes(GO2)["bodies"]
    assert all(body["parent"] < i for i, body in enumerate(bodies))
    assert sorted(body["joint"] for body in bodies[1:]) == list(range(12))


def test_feet_are_as_large_as_they_are() -> None:
    shapes = robot_shapes(GO2)["shapes"]
    feet = [shape for shape in shapes if shape["kind"] == "sphere"]
    assert {shape["size"][0] for shape in feet} == {GO2.foot_radius}
    assert mujoco.mjtGeom.mjGEOM_MESH not in load_model(GO2).geom_type  # the page draws primitives alone

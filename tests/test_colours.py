"""One source of colours: the page, its reports and its scripts define none of their own."""

import inspect
import re
from importlib.resources import files

import pytest

from keystride import colours
from keystride.studio.panels import result

WEB = files("keystride.studio.page") / "web"
SOURCES = {file.name: file.read_text(encoding="utf-8") for file in WEB.iterdir()} | {
    "result.py": inspect.getsource(result)
}


def test_likelihood_goes_from_red_to_green():
    assert colours.likelihood(0.0) == colours.MISSED
    assert colours.likelihood(0.5) == colours.ACTIVE
    assert colours.likelihood(1.0) == colours.MET


@pytest.mark.parametrize("name", SOURCES)
def test_pages_take_their_colours_from_the_palette(name: str):
    assert re.findall(r"#(?:[0-9a-fA-F]{3,4}){1,2}\b|\b(?:rgb|hsl)a?\(", SOURCES[name]) == []
    wanted = set(re.findall(r"--ks-[a-z0-9-]+", SOURCES[name])) - {"--ks-height", "--ks-music"}
    for scheme in colours.page_css().splitlines():
        assert wanted <= set(re.findall(r"(--ks-[a-z0-9-]+): #[0-9a-f]{6};", scheme))

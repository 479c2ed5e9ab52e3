from hypothesis import settings

from keystride.commands.graphics import choose_graphics

# No asserted times: a busy machine is not a failure. Derandomised: a run that failed fails again.
settings.register_profile("keystride", deadline=None, derandomize=True)
settings.load_profile("keystride")

choose_graphics()

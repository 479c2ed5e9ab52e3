from keystride.commands.graphics import choose_graphics

choose_graphics()

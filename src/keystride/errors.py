"""The errors that the command line prints as one line."""


class UserError(Exception):
    """A request that cannot be carried out. The message says why, and what is allowed."""


class FileError(ValueError):
    """A file that cannot be used. The message says in one line what is wrong, where, and what is allowed."""

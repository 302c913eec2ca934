"""README.md's chapters and commands, which tests play."""

import os

from lib.server import REPOSITORY, server_path

# Sanitizer builds have tools beside the server; else what make leaves in src/.
CLI = os.path.join(os.path.dirname(server_path()), "keydb-cli")
CLI = CLI if os.path.exists(CLI) else os.path.join(REPOSITORY, "src", "keydb-cli")


def chapter(title):
    with open(os.path.join(REPOSITORY, "README.md"), encoding="utf-8") as file:
        return file.read().split("\n## %s\n" % title)[1].split("\n## ")[0]


def commands_of(title):
    """The chapter's indented lines, in order."""
    return [line[4:] for line in chapter(title).split("\n") if line.startswith("    ")]

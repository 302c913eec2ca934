"""What a server says of lines of its configuration file."""

import re
import subprocess

from lib.bounds import scaled

FAULT = re.compile(r"at line (\d+).*\n>>> '.*'\n(.*)")
MARK = "no-such-option 1"


def verdicts(path, directory, lines):
    """What the program says of each line, '' where it takes it. It stops at the first wrong one, so it is asked again
    without that."""
    left, said = list(enumerate(lines)), [""] * len(lines)
    while left:
        (directory / "ends.conf").write_text("\n".join([line for _, line in left] + [MARK]) + "\n")
        done = subprocess.run([path, "ends.conf"], cwd=directory, stdin=subprocess.DEVNULL, timeout=scaled(20),
                              capture_output=True, text=True)
        match = FAULT.search(done.stdout + done.stderr)
        assert match, done.stdout + done.stderr
        at = int(match[1]) - 1
        if at == len(left):
            break
        said[left[at][0]] = match[2]
        del left[at]
    return said

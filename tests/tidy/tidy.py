"""The checks of `make tidy` that need no compiler: include arrows, sizes, banned calls, contracts,
leftovers, folder READMEs, formatting. Standard library only; one line a finding, as file:line: text.

The code it reads is formatted by clang-format, which is what makes line-wise reading enough: a
function's body opens and closes with a brace in column 0, and a header's prototypes start there.
"""

import argparse
import os
import re
import subprocess
import sys

FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 70
README_LINES_MAX = 59
# Calls whose bounds nobody can see, and conversions that cannot report an error (STYLE.md).
BANNED = ("strcpy", "strcat", "sprintf", "vsprintf", "gets", "atoi", "atol", "atoll", "atof",
          "strtok", "alloca")
# Tools have no number: they stand on these layers only.
TOOL_LAYERS = ("base", "resp")


def more_tool_layers():
    """{"tools/x": [layers]}: the Makefile's lines `tool_layers.x := ...`."""
    with open("Makefile", encoding="utf-8") as file:
        return {"tools/" + name: layers.split()
                for name, layers in re.findall(r"^tool_layers\.(\S+) := (.*)$", file.read(), re.M)}


# Libraries and system interfaces that only some folders may know (DESIGN.md, section 4): handlers
# and everything below them see no socket, one module talks to the allocator.
NETWORKED = ("net", "repl", "module", "cluster", "metrics", "server", "tools")
CONFINED = (
    ("jemalloc/", ("base",)),
    ("malloc.h", ("base",)),
    ("event2/", NETWORKED),
    ("sys/socket.h", NETWORKED),
    ("sys/un.h", NETWORKED),
    ("netinet/", NETWORKED),
    ("arpa/", NETWORKED),
    ("netdb.h", NETWORKED),
    ("hiredis", ("repl", "cluster", "tools")),
    ("lua", ("script",)),
    ("systemd/", ("server",)),
    ("histedit.h", ("tools",)),
    ("editline/", ("tools",)),
)
EXCEPTIONS = "tests/tidy/exceptions.txt"

SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
BANNED_CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
# Spelled so that this file does not find itself.
LEFTOVER = re.compile(r"\b(%s)\b" % "|".join(("FIX" + "ME", "TO" + "DO", "X" + "XX")))
DATA = re.compile(r"(_Static_assert|static_assert|typedef)\b|[^(]*\{")
PROTOTYPE_END = re.compile(r"\)[^;{}=]*;\s*$")


class Findings:
    def __init__(self):
        self.lines = []

    def add(self, path, line, text):
        self.lines.append("%s:%d: %s" % (path, line, text))


def strip_code(text):
    """The code alone: comments and the insides of literals become blanks, newlines stay."""
    out = []
    i, n = 0, len(text)
    while i < n:
        two = text[i:i + 2]
        if two == "/*":
            end = text.find("*/", i + 2)
            end = n if end < 0 else end + 2
        elif two == "//":
            end = text.find("\n", i)
            end = n if end < 0 else end
        elif text[i] in "\"'":
            end = i + 1
            while end < n and text[end] != text[i] and text[end] != "\n":
                end += 2 if text[end] == "\\" else 1
            end = min(end + 1, n)
            # The quotes stay, so that an include's name can be told from nothing at all.
            out.append(text[i])
            out.append("".join(c if c == "\n" else " " for c in text[i + 1:end - 1]))
            out.append(text[end - 1] if end - 1 > i else "")
            i = end
            continue
        else:
            out.append(text[i])
            i += 1
            continue
        out.append("".join(c if c == "\n" else " " for c in text[i:end]))
        i = end
    return "".join(out)


def source_files(root):
    for folder, dirs, names in os.walk(root):
        dirs.sort()
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.join(folder, name)


def folder_of(path):
    """src/base/x.c -> base; src/tools/cli/x.c -> tools/cli; None outside the house."""
    parts = path.split("/")
    if len(parts) == 3 and parts[0] == "src":
        return parts[1]
    if len(parts) == 4 and parts[:2] == ["src", "tools"]:
        return "tools/" + parts[2]
    return None


def arrow_fault(own, target, layers):
    """Why `own` may not include from `target`, or None."""
    if own == target:
        return None
    if own.startswith("tools/"):
        if target == "tools/common" or target in TOOL_LAYERS:
            return None
        if target in more_tool_layers().get(own, ()):
            return None
        return "tools may include tools/common, %s and their own folder" % ", ".join(TOOL_LAYERS)
    if target not in layers:
        return "%s is no layer" % target
    if layers[target] < layers[own]:
        return None
    return "%s (%d) may not see %s (%d)" % (own, layers[own], target, layers[target])


def check_confined(path, number, own, header, findings):
    for prefix, folders in CONFINED:
        if header.startswith(prefix) and own.split("/")[0] not in folders:
            findings.add(path, number, "include <%s>: only for %s (CONFINED in tidy.py)"
                         % (header, ", ".join(folders)))


def check_arrows(path, text, layers, findings):
    own = folder_of(path)
    if own is None or not (own in layers or own.startswith("tools/")):
        findings.add(path, 1, "stands in no layer's folder")
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = SYSTEM_INCLUDE.match(line)
        if match:
            check_confined(path, number, own, match.group(1), findings)
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        if not os.path.exists(os.path.join("src", target)) or "/" not in target:
            findings.add(path, number, 'include "%s": write it from src/' % target)
            continue
        if target.endswith(".c"):
            findings.add(path, number, "includes a .c file")
        folder = os.path.dirname(target)
        fault = arrow_fault(own, folder, layers)
        if fault:
            findings.add(path, number, 'include "%s": %s' % (target, fault))
        elif target.endswith("_priv.h") and folder != own:
            findings.add(path, number, 'include "%s": private to its folder' % target)


def functions(code_lines):
    """(name, line of the signature, lines from there to the closing brace), for each definition."""
    start = None
    for number, line in enumerate(code_lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start is not None:
            head = start - 1
            # The signature may be wrapped: its continuation lines are indented.
            while head > 1 and code_lines[head - 1].startswith((" ", "\t")):
                head -= 1
            signature = " ".join(code_lines[head - 1:start - 1])
            match = re.search(r"(\w+)\s*\(", signature)
            if match:
                yield match.group(1), head, number - head + 1
            start = None


def load_exceptions():
    """{(kind, name): (limit, line number)} from lines `kind name limit reason...`."""
    found = {}
    if not os.path.exists(EXCEPTIONS):
        return found
    with open(EXCEPTIONS, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not line.startswith("#"):
                fields = line.split(None, 3)
                if len(fields) < 4 or fields[0] not in ("file", "function") \
                        or not fields[2].isdigit():
                    sys.exit("%s:%d: want `file|function NAME LINES reason`" % (EXCEPTIONS, number))
                found[fields[0], fields[1]] = (int(fields[2]), number)
    return found


def check_size(kind, name, size, limit, where, exceptions, used, findings):
    path, line = where
    if size <= limit:
        return
    allowed = exceptions.get((kind, name))
    used.add((kind, name))
    if allowed is None:
        findings.add(path, line, "%s %s has %d lines, the limit is %d"
                     % (kind, name, size, limit))
    elif size > allowed[0]:
        findings.add(path, line, "%s %s has grown to %d lines; its exception says %d"
                     % (kind, name, size, allowed[0]))
    elif size < allowed[0]:
        findings.add(EXCEPTIONS, allowed[1], "%s %s has shrunk to %d lines: write that here"
                     % (kind, name, size))


def check_sizes(path, text, code_lines, exceptions, used, findings):
    check_size("file", path, text.count("\n"), FILE_LINES_MAX, (path, 1), exceptions, used, findings)
    for name, line, size in functions(code_lines):
        # The main of a unit test is the table of its tests.
        if name == "main" and path.startswith("tests/unit/"):
            continue
        check_size("function", path + ":" + name, size, FUNCTION_LINES_MAX, (path, line),
                   exceptions, used, findings)


def check_calls(path, text, code_lines, findings):
    for number, line in enumerate(code_lines, 1):
        match = BANNED_CALL.search(line)
        if match:
            findings.add(path, number, "%s is banned" % match.group(1))
    for number, line in enumerate(text.split("\n"), 1):
        match = LEFTOVER.search(line)
        if match:
            findings.add(path, number, "leftover %s" % match.group(1))


def check_braces(path, code, findings):
    """A brace after each if, else, for, while and do; clang-format 14 cannot insert them."""
    # Preprocessor lines have an if of their own; `} while (...);` ends a do.
    code = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*$", lambda m: "\n" * m.group(0).count("\n"), code)
    for match in re.finditer(r"\b(if|else|for|while|do)\b", code):
        at = match.end()
        word = match.group(1)
        if word in ("if", "for", "while"):
            at = closing_paren(code, at)
            if at is None or word == "while" and code[:match.start()].rstrip().endswith("}") \
                    and code[at:].lstrip().startswith(";"):
                continue
        rest = code[at:at + 400].lstrip()
        if not rest.startswith("{") and not (word == "else" and re.match(r"if\b", rest)):
            findings.add(path, code.count("\n", 0, match.start()) + 1, "no brace after " + word)


def closing_paren(code, at):
    """The position behind the group that opens next, or None where none does."""
    while at < len(code) and code[at] in " \t\n":
        at += 1
    if at >= len(code) or code[at] != "(":
        return None
    depth = 0
    for position in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return position + 1
    return None


def declarations(code_lines):
    """(first, last) line numbers of each statement or function at file scope of a header."""
    depth, start, skip = 0, None, False
    for number, line in enumerate(code_lines, 1):
        stripped = line.strip()
        if skip or (depth == 0 and start is None and stripped.startswith("#")):
            skip = stripped.endswith("\\")
            continue
        if not stripped:
            continue
        if start is None:
            start = number
        depth += line.count("{") - line.count("}")
        if depth == 0 and (stripped.endswith(";") or stripped.endswith("}")):
            yield start, number
            start = None


def check_contracts(path, text, code_lines, findings):
    """A comment directly above each prototype or behind it on its line; neighbours without a blank
    line share one. Inline functions show what they do."""
    lines = text.split("\n")
    contract_until = None
    for first, last in declarations(code_lines):
        joined = " ".join(code_lines[first - 1:last])
        above = lines[first - 2].strip() if first > 1 else ""
        documented = above.endswith("*/") or above.startswith("//") \
            or "/*" in lines[last - 1] or "//" in lines[last - 1] or contract_until == first - 1
        contract_until = last if documented else None
        if documented or not PROTOTYPE_END.search(joined) or DATA.match(joined):
            continue
        match = re.search(r"(\w+)\s*\(", joined)
        findings.add(path, first, "no contract above %s" % match.group(1))


def check_opening(path, text, findings):
    if not text.lstrip().startswith(("/*", "//")):
        findings.add(path, 1, "does not open with what it is")


def check_readmes(findings):
    folders = sorted({os.path.dirname(path) for path in source_files("src")})
    for folder in folders:
        path = os.path.join(folder, "README.md")
        # One README serves a tool's folder or all tools.
        if not os.path.exists(path) and folder.startswith("src/tools/"):
            path = "src/tools/README.md"
        if not os.path.exists(path):
            findings.add(os.path.join(folder, "README.md"), 1, "missing")
            continue
        with open(path, encoding="utf-8") as file:
            count = sum(1 for _ in file)
        if count > README_LINES_MAX:
            findings.add(path, 1, "has %d lines, the limit is %d" % (count, README_LINES_MAX))


def check_format(paths, clang_format, findings):
    if not paths:
        return
    # A few processes side by side: this is the slowest check.
    count = max(1, min(os.cpu_count() or 1, 4))
    running = [subprocess.Popen([clang_format, "--dry-run", "-Werror", "--ferror-limit=1"] + part,
                                stderr=subprocess.PIPE, text=True)
               for part in (paths[i::count] for i in range(count)) if part]
    for process in running:
        errors = process.communicate()[1]
        for line in errors.split("\n"):
            match = re.match(r"(\S+?):(\d+):\d+: error: (.*)", line)
            if match and match.group(1).endswith(".clang-format"):
                findings.add(".clang-format", int(match.group(2)), match.group(3))
                return
            if match:
                findings.add(match.group(1), int(match.group(2)), "formatting: make format")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", required=True, help="name:number ... (from the Makefile)")
    parser.add_argument("--clang-format", default="clang-format")
    parser.add_argument("--only", choices=["arrows"])
    args = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    layers = {name: int(number) for name, number in
              (item.split(":") for item in args.layers.split())}

    findings = Findings()
    exceptions, used = load_exceptions(), set()
    sources = list(source_files("src"))
    tests = list(source_files("tests"))
    for path in sources + tests:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        in_src = path.startswith("src/")
        if in_src:
            check_arrows(path, text, layers, findings)
        if args.only:
            continue
        code = strip_code(text)
        code_lines = code.split("\n")
        check_braces(path, code, findings)
        check_sizes(path, text, code_lines, exceptions, used, findings)
        check_calls(path, text, code_lines, findings)
        check_opening(path, text, findings)
        if in_src and path.endswith(".h"):
            check_contracts(path, text, code_lines, findings)
    if not args.only:
        for key in sorted(set(exceptions) - used):
            findings.add(EXCEPTIONS, exceptions[key][1], "%s %s needs no exception any more" % key)
        check_readmes(findings)
        check_format(sources + tests, args.clang_format, findings)

    for line in findings.lines:
        print(line)
    what = args.only or "tidy"
    print("%s: %d files, %d findings" % (what, len(sources + tests), len(findings.lines)))
    return 1 if findings.lines else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the programs, their man pages and the completion for bash say of options is the same; and the programs
know the options that Redis's have."""

import os
import re
import shutil
import subprocess

import pytest

from lib.server import REPOSITORY, server_path

pytestmark = pytest.mark.any_threads

PROGRAMS = os.path.dirname(server_path())
NAMES = ["keydb-server", "keydb-cli", "keydb-benchmark", "keydb-check-rdb", "keydb-check-aof"]
SOURCES = {"keydb-cli": "cli/options.c", "keydb-benchmark": "benchmark/options.c"}


def read(*path):
    with open(os.path.join(REPOSITORY, *path), encoding="utf-8") as file:
        return file.read()


def help_of(name):
    done = subprocess.run([os.path.join(PROGRAMS, name), "--help"], capture_output=True, text=True)
    return done.stdout + done.stderr


def options_of_help(name):
    """{name: whether a value follows}"""
    found = {}
    for line in help_of(name).split("\n\nExamples:")[0].split("\n"):
        if re.match(r" {1,3}-", line):
            tag = re.split(r"  +", line.strip())[0]
            for option in re.sub(r" <.*>$", "", tag).split(", "):
                found[option] = "<" in tag
    return {o: v for o, v in found.items() if " " not in o}


def options_of_source(name):
    """(those that are taken, those that are refused because they do not exist yet)"""
    text = read("src", "tools", SOURCES[name])
    rows = re.findall(r'\{"(-[^"]+)", (\w+)(?:, (\w+))?\}', text)
    refused = {option for option, *words in rows if "OPTION_REFUSED" in words or any(w.startswith("refuse") for w in words)}
    return {option for option, *_ in rows} - refused, refused


def options_of_conf():
    return set(re.findall(r"^#?([a-z][a-z0-9_-]*) ", read("keydb.conf"), re.M))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = subprocess.run([os.path.join(REPOSITORY, "pkg", "make-pages"), PROGRAMS, str(folder)],
                          capture_output=True, text=True)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    return folder


# ---- against Redis's programs, and the source ----

@pytest.mark.parametrize("name", ["keydb-cli", "keydb-benchmark"])
def test_every_option_of_redis(name):
    """Each one that the --help of Redis's program begins a line with is one of ours; but for what does not exist."""
    text = subprocess.run([name.replace("keydb", "redis"), "--help"], capture_output=True, text=True).stdout
    theirs = set(re.findall(r"^ {1,2}(-[^ ,]+)", text.split("\nExamples:")[0], re.M))
    assert len(theirs) > 30
    assert sorted(theirs - set(options_of_help(name)) - options_of_source(name)[1]) == []


@pytest.mark.parametrize("name", SOURCES)
def test_help_has_every_option(name):
    taken, refused = options_of_source(name)
    assert len(taken) > 30 and "--cluster" in refused
    # -v is --version by another name.
    assert taken - {"-v"} == set(options_of_help(name))


# ---- man pages ----

def tags_of_page(text):
    """The options that a page has entries for."""
    found = set()
    for tag in re.findall(r"^\.T[PQ]\n(.*)", text, re.M):
        tag = tag.replace("\\-", "-")
        if tag.startswith("\\fB"):
            found |= set(re.findall(r"\\fB(.*?)\\fR", tag))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_pages_have_every_option_and_no_other(pages, name):
    page = (pages / (name + ".1")).read_text()
    assert tags_of_page(page) == set(options_of_help(name)) != set()
    assert "@BODY@" not in page and 'keydb-server %s"' % version() in page


def version():
    return re.search(r'define KEYDB_VERSION "(.*)"', read("src", "base", "version.h")).group(1)


def test_page_of_keydb_conf(pages):
    page = (pages / "keydb.conf.5").read_text()
    assert tags_of_page(page) == options_of_conf()
    # No comment is left out: what is shown has the words of the file, in the file's order but for tags.
    words = re.findall(r"\w{4,}", re.sub(r"^#?[a-z].*$|^#+$", "", read("keydb.conf"), flags=re.M))
    shown = re.findall(r"\w{4,}", page.replace("\\-", "-").replace("\\&", ""))
    assert {w.lower() for w in words} <= {w.lower() for w in shown}


def test_every_page_is_well_formed(pages):
    if not shutil.which("man"):
        pytest.skip("there is no man here")
    for page in sorted(pages.glob("*.[1-8]")):
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", str(page)], capture_output=True, text=True,
                              env={**os.environ, "MANWIDTH": "200", "MAN_KEEP_FORMATTING": ""})
        assert (done.returncode, done.stderr) == (0, ""), page
        assert "\nNAME\n" in done.stdout and "SEE ALSO\n" in done.stdout
    assert len(list(pages.glob("*.[1-8]"))) == len(NAMES) + 1


def test_a_page_reads_as_the_help(pages):
    """With quotes, dashes and backslashes as they are typed."""
    if not shutil.which("man"):
        pytest.skip("there is no man here")
    shown = subprocess.run(["man", "-E", "UTF-8", "-P", "cat", "-l", str(pages / "keydb-cli.1")], capture_output=True, text=True,
                           env={**os.environ, "MANWIDTH": "4000", "MAN_KEEP_FORMATTING": ""}).stdout
    shown = re.sub(r"\s+", " ", shown)
    for text in ('are read as quoted strings ("a\\x00b").', "redis://user:password@host:port/db", "other bytes become \\xHH.",
                 "the server's certificate is checked", "--eval s.lua key1 key2 , arg1", "-h hostname"):
        assert text in shown, text


# ---- completion ----

# What TAB offers behind these words: as bash calls the function, without a terminal.
HARNESS = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_keydb "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
for word in "${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
"""


@pytest.fixture
def offered(pages, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.conf").write_text("")

    def offer(*words):
        done = subprocess.run(["bash", "-c", HARNESS, "bash", str(pages / "keydb.bash"), *words], cwd=tmp_path,
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), words
        return sorted(done.stdout.split("\n")[:-1])
    return offer


@pytest.mark.parametrize("name", NAMES)
def test_completion_has_every_option_and_no_other(offered, name):
    wanted = set(options_of_help(name))
    if name == "keydb-server":
        wanted |= {"--" + option for option in options_of_conf()}
    assert set(offered(name, "-")) == wanted
    assert offered("/some/where/" + name.replace("keydb", "redis"), "-") == sorted(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_completion_knows_where_values_follow(offered, name):
    """Behind an option with a value no options are offered, even if it begins with a dash."""
    for option, has_value in options_of_help(name).items():
        if len(option) > 2:
            assert bool(offered(name, option, "--")) != has_value, option


def test_completion_of_values(offered):
    assert offered("keydb-cli", "--cacert", "fi") == ["file.conf"]
    assert offered("keydb-cli", "--cacertdir", "f") == ["folder"]
    assert offered("keydb-cli", "-h", "f") == []
    assert offered("keydb-cli", "--mem") == ["--memkeys", "--memkeys-samples"]
    assert offered("keydb-server", "f") == ["file.conf", "folder"]
    assert offered("keydb-server", "file.conf", "--appendonly", "") == ["no", "yes"]
    assert offered("keydb-server", "--dir", "") == ["folder"]
    assert offered("keydb-server", "--tls-cert-file", "") == ["file.conf", "folder"]
    assert offered("keydb-server", "--port", "") == []
    assert offered("keydb-check-rdb", "fi") == ["file.conf"]
    assert offered("keydb-check-aof", "--fix", "fi") == ["file.conf"]
    assert offered("keydb-benchmark", "-t", "zp") == ["zpopmin"]
    assert offered("keydb-benchmark", "-t", "get,set,lrange_1") == ["get,set,lrange_100"]


def test_completion_has_every_test_of_the_benchmark(offered):
    source = read("src", "tools", "benchmark", "catalogue.c")
    names = set(re.findall(r'\.(?:name|group) = "([a-z0-9_]+)"', source))
    assert set(offered("keydb-benchmark", "-t", "")) == names

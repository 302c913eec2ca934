"""How a run of the tests ended, for tests/run_pytest.py: which failed, and which of those only because
a bound passed (lib/bounds.py). A plugin of pytest; conftest.py registers it.

KEYDB_TEST_OUTCOME names the file: {test: {"late": bool, "text": str}}; a test is named as pytest's command line
takes it from where this run began. The seconds of the slowest files stand beneath pytest's slowest tests: many
short tests are long together. What fails is shown when it does as well: a long run may be ended before its summary.
"""

import collections
import json
import os

import pytest

from lib.bounds import PASSED, bounded_test

SLOWEST_FILES = 30
SUMMARY_FROM_S = 60
SHOWN_CHARS = 3000  # at once: the end of it


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    with bounded_test():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.excinfo is not None:
        report.late = call.excinfo.errisinstance(PASSED)


class Outcome:
    """Where the results of all processes come together."""

    def __init__(self, path, config):
        self.path = path
        self.config = config
        self.root = os.path.relpath(config.rootpath, config.invocation_params.dir)
        self.failed = {}
        self.seconds = collections.Counter()  # of a file, in all its tests

    def _add(self, report):
        # A process that died has no such mark: it is a fault.
        late = getattr(report, "late", False)
        test = "%s/%s" % (self.root, report.nodeid)  # no path is made of it: parameters may look like one
        known = self.failed.setdefault(test, {"late": True, "text": ""})
        known["late"] = known["late"] and late
        known["text"] += report.longreprtext + "\n"
        self.config.get_terminal_writer().line("\n%s\n%s" % (test, report.longreprtext[-SHOWN_CHARS:]))

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.failed:
            self._add(report)

    def pytest_collectreport(self, report):
        if report.failed:
            self._add(report)

    def pytest_terminal_summary(self, terminalreporter):
        if sum(self.seconds.values()) < SUMMARY_FROM_S:
            return
        terminalreporter.section("slowest %d files, of %d seconds" % (SLOWEST_FILES, sum(self.seconds.values())))
        for path, seconds in self.seconds.most_common(SLOWEST_FILES):
            terminalreporter.write_line("%7.1fs %s" % (seconds, path))

    def pytest_sessionfinish(self):
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.failed, file)


def pytest_configure(config):
    path = os.environ.get("KEYDB_TEST_OUTCOME")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcome(path, config))

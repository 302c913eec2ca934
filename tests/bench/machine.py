"""What the machine did meanwhile: CPU time of our processes, and of everybody else."""

import os
import time

TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def process_cpu_s(pid):
    """User and system time of all threads of a process, from the scheduler's own nanoseconds."""
    total_ns = 0
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
                    total_ns += int(file.read().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass  # a thread that has just ended
    except FileNotFoundError:
        pass
    return total_ns / 1e9 if total_ns else process_ticks_s(pid)


def process_ticks_s(pid):
    """The same in ticks of 10 ms, for kernels without schedstat."""
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK_S


def machine_busy_s():
    """Time that all cores together were not idle, stolen time included."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) * TICK_S


def own_cpu_s():
    """This process and the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Meter:
    """Foreign CPU in a stretch of time, as a share of one core.  `pids` are servers of ours that
    run meanwhile; this process and the generators that it waits for are ours as well."""

    def __init__(self, pids):
        self.pids = list(pids)
        self.start_s = time.monotonic()
        self.busy_s = machine_busy_s()
        self.ours_s = self._ours()

    def _ours(self):
        return own_cpu_s() + sum(process_cpu_s(pid) for pid in self.pids)

    def foreign_share(self):
        elapsed_s = time.monotonic() - self.start_s
        busy_s = machine_busy_s() - self.busy_s
        return max(0.0, (busy_s - (self._ours() - self.ours_s)) / max(elapsed_s, TICK_S))

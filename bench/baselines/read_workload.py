"""The workload file of the store-read bench, for the baselines in Python; read_workload.h describes it."""

import json
import resource
import time


class Workload:
    def __init__(self, path):
        self.objects, self.ranges = [], []
        with open(path, encoding="ascii") as file:
            for line in file:
                name, _, value = line.rstrip("\n").partition(" ")
                if name == "object":
                    self.objects.append(value.split(" ", 3)[:2])
                elif name == "range":
                    index, offset, _ = value.split(" ")
                    self.ranges.append((int(index), int(offset)))
                else:
                    setattr(self, name, value)
        self.tls = self.tls == "1"
        self.connections, self.length = int(self.connections), int(self.length)
        self.warm, self.measured = self.ranges[: int(self.warm_up)], self.ranges[int(self.warm_up) :]


class Meter:
    """Wall time and CPU time of this process, all threads, from its construction on."""

    def __init__(self):
        self.cpu, self.wall = self._cpu(), time.monotonic()

    @staticmethod
    def _cpu():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    def print_result(self, workload):
        seconds, cpu = time.monotonic() - self.wall, self._cpu() - self.cpu
        print(json.dumps({"bytes": len(workload.measured) * workload.length, "seconds": seconds, "cpu_s": cpu}))

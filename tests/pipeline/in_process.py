"""Stand in for a Spark session: run the tasks in this process, one after the other."""

from __future__ import annotations

from contextlib import contextmanager

import pyarrow as pa


class Context:
    """Records the descriptions of jobs."""

    master = "local[1]"

    def __init__(self):
        self.descriptions = []

    def getLocalProperty(self, _):
        return None

    def setLocalProperty(self, _, value):
        self.descriptions.append(value)

    def setJobDescription(self, text):
        self.descriptions.append(text)


class InProcess:
    """Counts how often it is opened."""

    def __init__(self):
        self.opened = 0
        self.sparkContext = Context()

    @contextmanager
    def open(self, *_, **__):
        self.opened += 1
        yield self

    def range(self, start, end, step, partitions):
        assert partitions == end - start, "one task for each simulation"
        return _Tasks(range(start, end, step))


class _Tasks:
    def __init__(self, ids):
        self.ids = ids

    def mapInArrow(self, work, schema):
        batches = ([pa.record_batch({"id": pa.array([i], pa.int64())})] for i in self.ids)
        self.done = [
            row for batch in batches for out in work(iter(batch)) for row in out.to_pylist()
        ]
        return self

    def collect(self):
        return self.done

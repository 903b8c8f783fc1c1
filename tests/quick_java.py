"""Options for the short-lived Java processes of tests."""

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""One compiler and one collector. The second compiler finishes too late for a short test."""

ENVIRONMENT = {"SPARK_SUBMIT_OPTS": OPTIONS, "SPARK_LAUNCHER_OPTS": OPTIONS}
"""Spark's scripts add these to the options of the driver and of its launcher, in every process that
a test starts."""
EXECUTORS = {"spark.executor.extraJavaOptions": OPTIONS}
ONE_PARTITION = ("--conf", "spark.sql.shuffle.partitions=1")

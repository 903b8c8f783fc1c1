"""Options for the short-lived Java processes of tests."""

from beforehand.spark.java import archive_options

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""One compiler and one collector. The second compiler finishes too late for a short test."""

ENVIRONMENT = {"SPARK_SUBMIT_OPTS": OPTIONS, "SPARK_LAUNCHER_OPTS": OPTIONS}
"""Spark's scripts add these to the options of the driver and of its launcher, in every process that
a test starts."""
EXECUTORS = {"spark.executor.extraJavaOptions": " ".join((OPTIONS, *archive_options()))}
"""Executors on this machine have the driver's class path, so its archive fits them: 1.5 CPU seconds
less for each."""
ONE_PARTITION = ("--conf", "spark.sql.shuffle.partitions=1")

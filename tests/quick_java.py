"""Options for the short-lived Java processes of tests."""

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""One compiler and one collector. The second compiler finishes too late for a short test."""

CONF = {
    "spark.driver.extraJavaOptions": OPTIONS,
    "spark.executor.extraJavaOptions": OPTIONS,
}
FLAGS = tuple(word for key, value in CONF.items() for word in ("--conf", f"{key}={value}"))
ONE_PARTITION = ("--conf", "spark.sql.shuffle.partitions=1")

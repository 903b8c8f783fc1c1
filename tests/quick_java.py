"""Options for a Java process that a test starts: it has little to do, and soon ends."""

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""One compiler and one collector. The second compiler finishes too late for a short test."""

CONF = {
    "spark.driver.extraJavaOptions": OPTIONS,
    "spark.executor.extraJavaOptions": OPTIONS,
}
FLAGS = tuple(word for key, value in CONF.items() for word in ("--conf", f"{key}={value}"))
ONE_PARTITION = ("--conf", "spark.sql.shuffle.partitions=1")

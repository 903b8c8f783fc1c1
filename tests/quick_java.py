"""What a Spark that a test starts as a user would is told: it has little to do, and soon ends."""

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""One compiler and one collector. What the second compiler makes comes too late to be used."""

CONF = {
    "spark.driver.extraJavaOptions": OPTIONS,
    "spark.executor.extraJavaOptions": OPTIONS,
}
FLAGS = tuple(word for key, value in CONF.items() for word in ("--conf", f"{key}={value}"))
ONE_PARTITION = ("--conf", "spark.sql.shuffle.partitions=1")

"""Start Spark: embedded by default, else on a cluster or a Connect server.

All other modules get their Spark session from here.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from beforehand.errors import InputError
from beforehand.signals import restored
from beforehand.spark.conf import check_addresses
from beforehand.spark.java import archive_options, java_home
from beforehand.spark.ship import ship
from beforehand.temporary import scratch_folder

EMBEDDED = "local[*]"
DEFAULT_PORTS = {"spark": 7077, "sc": 15002}
ANSWER_SECONDS_MAX = 10
SILENCE_SECONDS_MAX, GOODBYE_SECONDS_MAX = 0.5, 2
DRIVER_GIB_MIN, DRIVER_GIB_MAX = 2, 4
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET_LOGS = Path(__file__).with_name("log4j2.properties")

Conf = dict[str, bool | float | int | str | None]

SESSION_CONF: Conf = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": True,
}
"""Settings that any session may set, including a Connect session."""


@contextmanager
def open_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    app: str = "beforehand",
    small: bool = False,
    conf: Mapping[str, str] | None = None,
    ships: bool = False,
) -> Iterator[SparkSession]:
    """Open a new Spark session, and stop it on exit.

    master: a Spark master URL; None runs embedded, on all cores of this machine.
    remote: a Connect server, `sc://host:port`.
    small: for tests and quick jobs. Starts sooner, but bulk work takes twice the time.
    conf: Spark settings, which take precedence over the defaults here.
    ships: send this package to the executors.

    A process can have only one session. If one exists, its owner has to pass it explicitly, and
    this function refuses to reuse it. The Java process behind a master outlives the session. It
    serves the next session of this Python process, with the memory and the options it was started
    with.
    """
    check_addresses(master, remote)
    wanted: Conf = dict(conf or {})
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as scratch:
        if remote:
            spark = _join_server(remote, app, wanted)
        else:
            spark = _start_driver(master or EMBEDDED, app, small, wanted, Path(scratch))
        try:
            if ships:
                ship(spark, Path(scratch))
            yield spark
        finally:
            if _ended:
                _forget_java()
            else:
                spark.stop()


_ended: list[subprocess.Popen[bytes]] = []
"""The Java process that `end_java` signalled, until it has exited."""


def end_java(*, at_once: bool) -> None:
    """Signal the driver's Java process, if there is one, to exit. Safe in a signal handler.

    A thread that waits for an answer from Java then gets an error. A cancel request would use the
    connection on which that thread waits, and hang.

    at_once: kill Java without time to remove its temporary files.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        _end_launcher(traceback.walk_stack(frame))
    else:
        _ended[:] = [process]
        # A Java process that is still starting accepts no calls and has no files to remove.
        if at_once or getattr(SparkContext._active_spark_context, "_jsc", None) is None:
            process.kill()
            return
        # py4j gives each thread its own connection.
        silence = threading.Thread(target=_silence_java, daemon=True)
        silence.start()
        silence.join(SILENCE_SECONDS_MAX)
        process.terminate()
        # A thread that waits for Java's answer stays blocked until the process has exited.
        goodbye = threading.Timer(GOODBYE_SECONDS_MAX, process.kill)
        goodbye.daemon = True
        goodbye.start()


def _silence_java() -> None:
    """Turn Java's log off; otherwise Java logs every task that it aborts."""
    with suppress(Exception):
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.setLogLevel("OFF")


def _end_launcher(frames: Iterable[tuple[FrameType, int]]) -> None:
    """Kill the launcher of Java, which would otherwise print errors about removed folders.

    frames: the stack of the main thread, or the traceback of the interrupt. The process object
    exists only in a local variable of these frames, because Spark has not stored it yet.
    """
    for frame, _ in frames:
        process = frame.f_locals.get("proc") or frame.f_locals.get("self")
        if isinstance(process, subprocess.Popen) and getattr(process, "pid", None):
            for number in _with_children(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


def _with_children(number: int) -> list[int]:
    """Stop a process so that it starts no children, and return it with all its descendants.

    Systems without `/proc` do not list children; there, return the process alone.
    """
    with suppress(OSError):
        os.kill(number, signal.SIGSTOP)
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        return [number, *(below for child in children for below in _with_children(int(child)))]
    return [number]


def _forget_java() -> None:
    """Wait until Java has exited, and reset pyspark so that the next session starts a new one."""
    _ended.pop().wait()
    with SparkContext._lock:
        SparkContext._active_spark_context = None
        SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _start_driver(master: str, app: str, small: bool, wanted: Conf, scratch: Path) -> SparkSession:
    _check_answers(master)
    _refuse_to_share()
    environment = {
        "JAVA_HOME": str(java_home(scratch)),
        # Otherwise the workers run the first `python3` of the PATH, which may lack our packages.
        # Spark ignores `spark.pyspark.python` here. A cluster may have another path to Python.
        "PYSPARK_PYTHON": str(wanted.get("spark.pyspark.python", ""))
        or os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    conf = SESSION_CONF | _driver_conf(small)
    if master.startswith("local"):
        # No executor connects from outside, and the host name may not resolve. Executors of a
        # cluster do connect to the driver, so this is only for local masters.
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Spark's default of 200 suits a cluster; here most of them would be empty tasks.
        conf["spark.sql.shuffle.partitions"] = 1 if small else 2 * (os.cpu_count() or 1)
        conf["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
        conf["spark.local.dir"] = str(scratch_folder())
    user_set = bool(wanted)
    if JAVA_OPTIONS in wanted:
        wanted[JAVA_OPTIONS] = f"{conf[JAVA_OPTIONS]} {wanted[JAVA_OPTIONS]}"
    builder = SparkSession.builder.master(master).appName(app).config(map=conf | wanted)
    try:
        with _environment(environment), restored():  # Spark's own handler hangs (`end_java`)
            try:
                spark = builder.getOrCreate()
            except KeyboardInterrupt as error:
                _end_launcher(traceback.walk_tb(error.__traceback__))
                raise
        spark.sql("SELECT 1").schema  # Spark checks most settings only now # noqa: B018
        return spark
    except (PySparkException, Py4JError) as error:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
        hint = "`beforehand doctor` shows what this machine has"
        raise InputError(
            f"Spark does not start on `{master}`: {_reason(error)}",
            hint="check the settings of `--conf`" if user_set else hint,
        ) from error


def _reason(error: BaseException) -> str:
    """Return the first line of the innermost cause."""
    while cause := getattr(error, "_cause", None):
        error = cause
    return (str(error).splitlines() or [type(error).__name__])[0]


def _join_server(remote: str, app: str, wanted: Conf) -> SparkSession:
    _check_answers(remote)
    _refuse_to_share()
    try:
        builder = SparkSession.builder.remote(remote).appName(app)
        spark = builder.config(map=SESSION_CONF).getOrCreate()
        for key, value in wanted.items():
            spark.conf.set(key, str(value))  # the builder would only warn if it cannot be set
        return spark
    except ImportError as error:
        raise InputError(
            f"Connect needs more packages: {error}", hint="pip install 'beforehand[connect]'"
        ) from error
    except PySparkException as error:
        hint = "what only a start can set is set where the server is started" if wanted else ""
        raise InputError(f"no session at `{remote}`: {_reason(error)}", hint=hint) from error


def _refuse_to_share() -> None:
    """Refuse to run beside an existing session. Spark would return that session for us to configure
    and stop."""
    if SparkContext._active_spark_context is not None or SparkSession.getActiveSession():
        raise InputError(
            "another Spark session is active in this process",
            hint="pass it as `spark=`, or stop it first",
        )


def _check_answers(url: str) -> None:
    """Refuse an address where no server listens. Spark would retry for a minute or more."""
    scheme, places, *_ = urlsplit(url)
    if scheme not in DEFAULT_PORTS:
        return
    reasons = []
    for place in places.split(","):  # a cluster may have several masters, one of them active
        address = urlsplit(f"//{place}")
        try:
            endpoint = (address.hostname, address.port or DEFAULT_PORTS[scheme])
            socket.create_connection(endpoint, timeout=ANSWER_SECONDS_MAX).close()
            return
        except (OSError, ValueError) as error:
            reasons.append(f"`{place}`: {error}")
    raise InputError(
        "no Spark server answers at " + ", ".join(reasons),
        hint="start it, or leave the address out to run on this machine",
    )


def _driver_conf(small: bool) -> Conf:
    """Return the settings with which the driver's Java process starts."""
    # A killed Spark leaves libraries and other files in its temporary folder. In our scratch folder
    # the next process finds and removes them. The folder must outlive the session, as Java does.
    options = [
        f"-Dlog4j2.configurationFile={QUIET_LOGS.as_uri()}",
        f'"-Djava.io.tmpdir={scratch_folder()}"',
        *archive_options(),
    ]
    # Only the C1 compiler and one collector thread: faster start, less load on two cores.
    options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if small else []
    return {
        "spark.driver.memory": "1g" if small else f"{_driver_gib()}g",
        JAVA_OPTIONS: " ".join(options),
        # Unix domain sockets are faster. With them, however, Spark ends idle workers in the middle
        # of a message: each prints a traceback one minute after its last task.
        "spark.python.unix.domain.socket.enabled": False,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }


def _driver_gib() -> int:
    """Return a quarter of the memory; the Python workers do most of the work and need the rest."""
    total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(total_bytes // 2**32, DRIVER_GIB_MIN), DRIVER_GIB_MAX)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while Java starts, then restore them for other child processes."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

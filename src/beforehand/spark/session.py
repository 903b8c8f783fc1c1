"""The one place that starts Spark: embedded by default, else on a cluster or a Connect server."""

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
from beforehand.spark.conf import check_addresses
from beforehand.spark.java import java_home
from beforehand.temporary import scratch_folder

EMBEDDED = "local[*]"
DEFAULT_PORTS = {"spark": 7077, "sc": 15002}
ANSWER_SECONDS_MAX = 10
HUSH_SECONDS_MAX, GOODBYE_SECONDS_MAX = 0.5, 2
DRIVER_GIB_MIN, DRIVER_GIB_MAX = 2, 4
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
QUIET_LOGS = Path(__file__).with_name("log4j2.properties")

Conf = dict[str, bool | float | int | str | None]

SESSION_CONF: Conf = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": True,
}
"""What any session may set, a Connect session too."""


@contextmanager
def open_session(
    master: str | None = None,
    remote: str | None = None,
    *,
    app: str = "beforehand",
    small: bool = False,
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session of our own, stopped on the way out.

    master: as Spark writes it; None is embedded, on all cores of this machine.
    remote: a Connect server, `sc://host:port`.
    small: for tests and quick jobs. Starts sooner, but bulk work takes twice the time.
    conf: settings of Spark, which come before ours.

    A process has one session: where there is one already, whoever has it must say that it may be
    used. The Java process behind a master outlives the session and serves the next one of this
    Python process, with the memory and the options that it was started with.
    """
    check_addresses(master, remote)
    wanted: Conf = dict(conf or {})
    with tempfile.TemporaryDirectory(dir=scratch_folder()) as scratch:
        if remote:
            spark = _join_server(remote, app, wanted)
        else:
            spark = _start_driver(master or EMBEDDED, app, small, wanted, Path(scratch))
        try:
            yield spark
        finally:
            if _ended:
                _forget_java()
            else:
                spark.stop()


_ended: list[subprocess.Popen[bytes]] = []
"""The Java process that was told to go, until it is gone."""


def end_java(*, at_once: bool) -> None:
    """Tell the Java process of the driver to go, if there is one; fit for a signal handler.

    Whoever waits for its answer gets an error instead. Asking it to cancel would go through the
    very connection on which the answer is awaited, and hang.
    at_once: it has no time to remove its temporary files.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        _end_launcher(traceback.walk_stack(frame))
    else:
        _ended[:] = [process]
        # One that is not up yet cannot be hushed, and has nothing to put away.
        if at_once or getattr(SparkContext._active_spark_context, "_jsc", None) is None:
            process.kill()
            return
        # Another thread has a connection of its own.
        hush = threading.Thread(target=_hush_java, daemon=True)
        hush.start()
        hush.join(HUSH_SECONDS_MAX)
        process.terminate()
        # Until it is gone, whoever waits for its answer goes on waiting.
        goodbye = threading.Timer(GOODBYE_SECONDS_MAX, process.kill)
        goodbye.daemon = True
        goodbye.start()


def _hush_java() -> None:
    """Else it tells of every task that it gives up."""
    with suppress(Exception):
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.setLogLevel("OFF")


def _end_launcher(frames: Iterable[tuple[FrameType, int]]) -> None:
    """What starts Java stumbles over folders that are removed on the way out, and says so.

    frames: what is being done, or was. Spark has told nobody else of the process yet, and perhaps
    was not told itself.
    """
    for frame, _ in frames:
        process = frame.f_locals.get("proc") or frame.f_locals.get("self")
        if isinstance(process, subprocess.Popen) and getattr(process, "pid", None):
            for number in _with_children(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


def _with_children(number: int) -> list[int]:
    """A process and all that it started, stopped so that they start no more; where the system does
    not tell, the process alone."""
    with suppress(OSError):
        os.kill(number, signal.SIGSTOP)
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        return [number, *(below for child in children for below in _with_children(int(child)))]
    return [number]


def _forget_java() -> None:
    """Wait until it is gone. The next session of this Python process starts another."""
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
        # Else the workers run the first `python3` of the PATH, which may lack our packages. Spark
        # does not look at the setting by itself. A cluster may have its own path to it.
        "PYSPARK_PYTHON": str(wanted.get("spark.pyspark.python", ""))
        or os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    conf = SESSION_CONF | _driver_conf(small)
    if master.startswith("local"):
        # Nobody outside calls back, and the name of this machine may not resolve. The executors
        # of a cluster do call back.
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Spark's 200 are for a cluster; here most of them would be empty tasks.
        conf["spark.sql.shuffle.partitions"] = 1 if small else 2 * (os.cpu_count() or 1)
        conf["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
        conf["spark.local.dir"] = str(scratch_folder())
    user_set = bool(wanted)
    if JAVA_OPTIONS in wanted:
        wanted[JAVA_OPTIONS] = f"{conf[JAVA_OPTIONS]} {wanted[JAVA_OPTIONS]}"
    builder = SparkSession.builder.master(master).appName(app).config(map=conf | wanted)
    try:
        with _environment(environment), _our_interrupts():
            try:
                spark = builder.getOrCreate()
            except KeyboardInterrupt as error:
                _end_launcher(traceback.walk_tb(error.__traceback__))
                raise
        spark.sql("SELECT 1").schema  # most settings are looked at only now  # noqa: B018
        return spark
    except (PySparkException, Py4JError) as error:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()
        hint = "`beforehand doctor` shows what this machine has"
        raise InputError(
            f"Spark does not start on `{master}`: {_reason(error)}",
            hint="look at what `--conf` says" if user_set else hint,
        ) from error


def _reason(error: BaseException) -> str:
    """What is at the bottom of it, in one line."""
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
            spark.conf.set(key, str(value))  # the builder would only warn of what cannot be set
        return spark
    except ImportError as error:
        raise InputError(
            f"Connect needs more packages: {error}", hint="pip install 'beforehand[connect]'"
        ) from error
    except PySparkException as error:
        hint = "what only a start can set is set where the server is started" if wanted else ""
        raise InputError(f"no session at `{remote}`: {_reason(error)}", hint=hint) from error


def _refuse_to_share() -> None:
    """Spark would hand us the session that somebody else works in, for us to set and to stop."""
    if SparkContext._active_spark_context is not None or SparkSession.getActiveSession():
        raise InputError(
            "there is a Spark session in this process already, and it is not ours to take",
            hint="hand it over (`spark=`), or stop it first",
        )


def _check_answers(url: str) -> None:
    """Refuse an address where nobody listens. Spark would try it again for a minute or more."""
    scheme, places, *_ = urlsplit(url)
    if scheme not in DEFAULT_PORTS:
        return
    reasons = []
    for place in places.split(","):  # a cluster may have several masters, of which one is active
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
    """What the Java process of the driver is started with."""
    # Spark leaves libraries and more in the temporary folder when it is killed; in ours they are
    # found and removed. It lasts as long as Java does, which is longer than a session.
    options = [
        f"-Dlog4j2.configurationFile={QUIET_LOGS.as_uri()}",
        f'"-Djava.io.tmpdir={scratch_folder()}"',
    ]
    # The first compiler only, one collector thread: less to start, less to share two cores with.
    options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if small else []
    return {
        "spark.driver.memory": "1g" if small else f"{_driver_gib()}g",
        JAVA_OPTIONS: " ".join(options),
        # A socket in the file system is faster, but Spark ends idle workers behind one in the
        # middle of a word: a traceback for each of them, a minute after their last task.
        "spark.python.unix.domain.socket.enabled": False,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }


def _driver_gib() -> int:
    """A quarter of the machine: the Python workers, which do most of the work, need the rest."""
    total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(total_bytes // 2**32, DRIVER_GIB_MIN), DRIVER_GIB_MAX)


@contextmanager
def _our_interrupts() -> Iterator[None]:
    """Spark sets a handler of its own for Ctrl-C, which hangs (see `end_java`): put ours back."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set while Java starts, put back after: what we choose for it is not for other programs."""
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

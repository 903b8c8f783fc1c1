"""The command line, as a user meets it."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import beforehand
from beforehand.cli import main
from beforehand.commands.shell.dispatch import COMMANDS
from beforehand.events import FILE_COLUMNS
from beforehand.mobility.formats.contacts_list import write_contacts
from beforehand.mobility.generators import crowd
from beforehand.pipeline.experiment import world_names

CONTACTS = "a b 0 600\nb c 100 900\nc d 500 1200\n"


@pytest.fixture
def contacts(tmp_path):
    path = tmp_path / "contacts.txt"
    path.write_text(CONTACTS)
    return path


def test_simulate_prints_a_table(contacts, capsys):
    assert main(["simulate", str(contacts), "--protocol", "delta", "--lifetime", "20m"]) == 0
    shown = capsys.readouterr()
    assert "deliveries" in shown.out
    assert "reception to delivery" in shown.out
    assert "transfer model: latency 2 ms" in shown.err


def test_simulate_gives_json_and_writes_the_event_log(contacts, tmp_path, capsys):
    events = tmp_path / "events.parquet"
    assert main(["simulate", str(contacts), "--json", "--events", str(events)]) == 0
    summary = json.loads(capsys.readouterr().out)
    table = pq.read_table(events)
    assert table.column_names == list(FILE_COLUMNS)
    kinds = table["kind"].to_pylist()
    assert kinds.count("receive") == summary["receptions"] > 0
    assert kinds.count("deliver") == summary["deliveries"]
    assert table["step"].to_pylist() == list(range(len(table)))


@pytest.fixture
def meetings(tmp_path):
    path = tmp_path / "meetings.txt"
    write_contacts(crowd.generate(1, nodes_mean=60, hours=1), path)
    return path


def test_a_run_that_breaks_causal_order_exits_1(meetings, capsys):
    arguments = ["simulate", str(meetings), "--protocol", "delta", "--lifetime", "5m"]
    arguments += ["--skew", "200s", "--period", "30s", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["violations"]["late"] == 0
    assert main([*arguments, "--literal"]) == 1
    assert json.loads(capsys.readouterr().out)["violations"]["late"] > 0


def test_late_deliveries_of_a_protocol_without_order_exit_0(meetings, capsys):
    assert main(["simulate", str(meetings), "--protocol", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["violations"]["late"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--protocol", "gossip"],
            "one of `causal`, `delta`, `stamped`, `vector`, `plausible`, `none`",
        ),
        (["--protocol", "delta"], "`delta` needs a lifetime"),
        (["--protocol", "delta", "--lifetime", "0s"], "must be longer than zero"),
        (["--protocol", "delta", "--lifetime", "20"], "write a number and a unit"),
        (["--protocol", "causal", "--lifetime", "20m"], "has no message lifetimes"),
        (["--loss", "0.1"], "need a retry time"),
        (["--loss", "1.5", "--retry", "1s"], "not a share: `1.5`"),
        (["--bandwidth", "fast"], "bytes per second"),
        (["--capacity", "0"], "not a whole number from 1 on: `0`"),
        (["--events", "nowhere/at/all.parquet"], "no such folder"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2_and_a_hint(contacts, capsys, arguments, message):
    assert main(["simulate", str(contacts), *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_a_contact_that_ends_before_it_starts_names_file_and_line(tmp_path, capsys):
    path = tmp_path / "bad.txt"
    path.write_text("a b 0 600\nb c 900 100\n")
    assert main(["simulate", str(path)]) == 2
    assert f"{path}:2" in capsys.readouterr().err


def test_a_missing_file_and_a_missing_argument_are_named(tmp_path, capsys):
    assert main(["simulate", str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err
    assert main(["simulate"]) == 2
    assert "--example" in capsys.readouterr().err


def test_positions_become_contacts_within_a_range(tmp_path, capsys):
    path = tmp_path / "walk.csv"
    path.write_text("node,t,x,y\na,0,0,0\na,600,0,0\nb,0,900,0\nb,600,0,0\n")
    assert main(["simulate", str(path)]) == 2
    assert "--range 200m" in capsys.readouterr().err
    assert main(["simulate", str(path), "--range", "200m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["receptions"] > 0


def test_debug_shows_the_traceback(contacts):
    with pytest.raises(beforehand.InputError):
        main(["--debug", "simulate", str(contacts), "--protocol", "gossip"])


def test_fuzz_replays_a_seed_and_counts_a_swarm(capsys):
    assert main(["fuzz", "--replay", "3", "--protocol", "delta"]) == 0
    told = capsys.readouterr().out
    assert "seed 3, delta: passed" in told
    assert "all went well:\n" in told  # a story in words, of what went well too
    assert "\n  the net heals" in told
    assert main(["fuzz", "--seeds", "4", "--workers", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["failures"] == []
    assert {tally["runs"] for tally in report["tallies"].values()} == {4}


def test_a_failing_seed_exits_1_and_prints_the_command_that_replays_it(capsys, monkeypatch):
    from beforehand.check.families import contacts
    from beforehand.protocols.orders.unordered import Unordered

    monkeypatch.setattr(contacts, "make_order", lambda _, node, __: Unordered(node))
    codes = [main(["fuzz", "--protocol", "causal", "--replay", str(seed)]) for seed in range(12)]
    assert 1 in codes
    shown = capsys.readouterr()
    assert f"replay: beforehand fuzz --protocol causal --replay {codes.index(1)}" in shown.err
    assert "causally follows it" in shown.out


@pytest.mark.parametrize("arguments", [["--protocol", "gossip"], ["--seeds", "0"]])
def test_invalid_arguments_of_fuzz_are_refused(arguments):
    assert main(["fuzz", *arguments]) == 2


def test_doctor_prints_json(capsys):
    code = main(["doctor", "--json"])
    found = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert found["python"]["state"] == "ok"
    assert code == (3 if any(f["state"] == "missing" for f in found.values()) else 0)


def test_version_and_help_are_quick_and_need_nothing_heavy():
    code = (
        "import sys; from beforehand.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'pyspark', 'pandas', 'altair', 'rich'}\n"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0
    version = [sys.executable, "-m", "beforehand.cli", "--version"]
    shown = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    assert shown == f"beforehand {beforehand.__version__}\n"


@pytest.mark.parametrize("world", world_names())
def test_status_and_report_need_no_package_of_the_simulator(tmp_path, world):
    index = {"scenario": "x", "world": world, "stages": {"events": []}}
    (tmp_path / "plan.json").write_text(json.dumps(index))
    (tmp_path / "scenario.json").write_text(json.dumps({"name": "x", "world": world}))
    code = (
        "import sys; from beforehand.cli import main\n"
        f"codes = [main([name, {str(tmp_path)!r}]) for name in ('status', 'report')]\n"
        "assert codes == [3, 2], codes\n"  # there is nothing to do, and nothing to report
        "sys.exit(bool({'numba', 'pyspark'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_command_shows_an_example(capsys):
    for name in [command.__name__.rpartition(".")[2] for command in COMMANDS]:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        example = capsys.readouterr().out.partition("example:\n")[2]
        assert f"  beforehand {name}" in example

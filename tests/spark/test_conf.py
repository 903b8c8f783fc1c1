"""Settings of Spark are checked before Spark starts."""

import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.spark.conf import read_conf


def test_spark_settings_are_split_into_keys_and_values():
    given = ["spark.executor.memory=2g", "spark.executorEnv.A_b=x=y", "spark.executor.memory=2g"]
    assert read_conf(given) == {"spark.executor.memory": "2g", "spark.executorEnv.A_b": "x=y"}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["executor.memory=2g"], "not a setting of Spark: `executor.memory=2g`"),
        (["spark.executor.memory"], "not a setting"),
        (["spark.executor.memory="], "not a setting"),
        (["spark.=1"], "not a setting"),
        (["spark.a b=1"], "not a setting"),
        (["spark.master=local"], "`spark.master` is no setting here"),
        (["spark.a=1", "spark.a=2"], "two values for `spark.a`: `1` and `2`"),
    ],
)
def test_an_invalid_spark_setting_is_refused_with_a_hint(texts, problem):
    with pytest.raises(InputError) as refused:
        read_conf(texts)
    assert problem in refused.value.problem
    assert refused.value.where == "--conf"
    assert refused.value.hint


@pytest.mark.parametrize("command", ["run", "observe"])
def test_a_wrong_spark_setting_is_refused_before_anything_starts(
    command, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("beforehand.spark.session.open_session", None)
    (tmp_path / "one.toml").write_text('[scenario]\nworld = "overlay"\n')
    (tmp_path / "events").mkdir()
    arguments = {
        "run": [str(tmp_path / "one.toml")],
        "observe": [str(tmp_path / "events"), "--epsilon", "1ms", "--delta", "1ms"],
    }
    out = ["--out", str(tmp_path / "out"), "--conf", "memory=1"]
    assert main([command, *arguments[command], *out]) == 2
    assert "not a setting of Spark: `memory=1`" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

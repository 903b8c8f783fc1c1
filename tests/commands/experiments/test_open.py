"""`run --open`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from beforehand.cli import main


@pytest.mark.parametrize("has_browser", [True, False])
def test_open_shows_the_page_or_prints_its_path(tmp_path, monkeypatch, capsys, has_browser):
    page, opened = tmp_path / "report.html", []
    experiment = SimpleNamespace(noun="runs", table=lambda _: (("run",), []))
    summary = SimpleNamespace(
        name="x", title="x", state="valid", computed={}, rows=[], experiment=experiment
    )
    monkeypatch.setattr("beforehand.pipeline.jobs.run_scenario", lambda *_, **__: summary)
    monkeypatch.setattr("beforehand.lab.report.write_report", lambda _: page)
    monkeypatch.setattr("beforehand.commands.experiments.run._write_play", lambda _: None)
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or has_browser)
    assert main(["run", "x.toml", "--open", "--out", str(tmp_path)]) == 0
    assert opened == [page.as_uri()]
    assert ("no browser here" in capsys.readouterr().err) != has_browser


def test_there_is_no_page_to_open_without_a_report(capsys):
    assert main(["run", "x.toml", "--open", "--no-report"]) == 2
    assert "not allowed with" in capsys.readouterr().err

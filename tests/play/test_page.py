"""The page is one file that nothing in its data can break."""

import re

import pytest

from beforehand.events import JOIN
from beforehand.play import page
from beforehand.play.encode import PLAIN
from beforehand.play.gather import gather_run
from tests.play.made_up import HOSTILE, write_log

KINDS_OF_RUNS = ("cells", "vcube", "observer", "causal")


@pytest.fixture
def built(tmp_path):
    rows = [(0, node, JOIN, -1, -1) for node in range(len(HOSTILE))]
    return page.build_page(gather_run(write_log(tmp_path / "log.parquet", rows, HOSTILE)))


def test_a_name_cannot_end_the_script_that_holds_it(built):
    assert built.count("</script>") == built.count("<script") == 3
    assert "<!--" not in built


def test_the_page_names_no_address_and_allows_no_request(built):
    assert "default-src 'none'" in built
    # The namespace of SVG is the only address, and no browser asks for it.
    assert not re.findall(r"(?:src|href)=.https?:|import\(|fetch\(|XMLHttpRequest|url\(", built)


def test_each_module_comes_after_those_that_it_imports():
    script = page.bundle(page.ENTRY)
    for name, at in ((m[1], m.start()) for m in re.finditer(r"= (\$\w+);", script)):
        assert script.index(f"const {name} = (() =>") < at


def test_modules_that_import_each_other_are_refused(tmp_path, monkeypatch):
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\n')
    monkeypatch.setattr(page, "PARTS", tmp_path)
    with pytest.raises(ValueError, match=r"a\.js -> b\.js -> a\.js"):
        page.bundle("a.js")


def test_every_module_of_the_page_is_used_and_small():
    scripts = [page.bundle(page.ENTRY, kind) for kind in (PLAIN, *KINDS_OF_RUNS)]
    for part in page.PARTS.iterdir():
        if part.name.endswith(".js"):
            assert any(f"const ${part.name[:-3]} = (() =>" in script for script in scripts), (
                part.name
            )
            assert len(part.read_text().splitlines()) <= 400, part.name


@pytest.mark.parametrize("kind", KINDS_OF_RUNS)
def test_a_page_has_the_module_of_its_kind_and_of_no_other(kind):
    script = page.bundle(page.ENTRY, kind)
    assert f"const {{ KIND }} = ${kind};" in script
    modules = {name for name in (*KINDS_OF_RUNS, page.KIND) if f"const ${name} = (() =>" in script}
    assert modules == {kind}
    rest = sum(len((page.PARTS / name).read_text()) for name in ("index.html", "play.css"))
    assert len(script) + rest < 150_000


def test_a_page_that_is_too_large_is_refused_with_a_hint(tmp_path, monkeypatch):
    rows = [(0, 0, JOIN, -1, -1)]
    run = gather_run(write_log(tmp_path / "log.parquet", rows))
    monkeypatch.setattr(page, "PAGE_BYTES_MAX", 1000)
    with pytest.raises(page.InputError) as refused:
        page.write_page(run, tmp_path / "play.html")
    assert "--from" in refused.value.hint
    assert not (tmp_path / "play.html").exists()


def test_an_export_that_the_bundle_cannot_pass_on_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.js").write_text("export const [ONE, TWO] = [1, 2];\n")
    monkeypatch.setattr(page, "PARTS", tmp_path)
    with pytest.raises(ValueError, match="single name"):
        page.bundle("a.js")

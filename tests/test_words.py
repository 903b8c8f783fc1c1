"""The words of the project: every sentence and every test name has an actor that a reader can name.

Checked are docstrings, comments, other strings, prose of Markdown files and names of tests.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
THIS = "tests/test_words.py"

OPENING = re.compile(
    r"(?:^|[.!?:] )(?:(?:Who|Whoever|Whom|Nobody|Somebody|Anybody)\b[^?]*?(?:[.;:,]|$)|Whoever\b)"
)
"""A sentence whose subject the reader has to guess. A question is a heading of a FAQ."""
WHAT = re.compile(r"(?:^|[.!] )What(?:ever)?\b[^?]*?[.;:,](?: |$)")
"""A clause in place of a name: "What a node forgets is a prefix" for "The forgotten messages are".
A heading without punctuation and a question may begin so."""
PHRASES = re.compile(
    r"without a word|in silence\b|mistake of ours|how far it has come|come so far"
    r"|is nobody here|none of states|hardly anybody|look for trouble|the end of a connection's",
    re.IGNORECASE,
)
"""Private phrases that were replaced by terms of the field."""
OLD_NAMES = re.compile(r"\b(?:PacedLane|SaidBatch|unclean|ups_and_downs|Chorus|trap \d+)\b")
"""Names in prose that were replaced. `marks`, `said`, `news` and `neighbour` are not here:
a mark in a table, the past tense of a person's `say`, and a node in radio range are legitimate."""
PRONOUNS = re.compile(r"\b(?:[Nn]o|[Ss]ome|[Aa]ny|[Ee]very)body\b|\b[Ww]hoever\b")
"""Actors without a name. Banned in everything that a user or a reader of `src` sees."""
WITHOUT_PRONOUNS = ("src/", "docs/", "examples/", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
OLD_IDENTIFIERS = frozenset(
    re.findall(
        r"\w+",
        """
    PacedLane Chorus Said SaidBatch Say Heard Reached Behind Greeting Fate Voice Ear Still
    Rest NEWS LIFE WHO endings _endings find_unclean_contacts find_unclean_points
    ups_and_downs unclean haste hastes recall ice players fuse told_stages tell_trace unheard
    speaking is_news next_news news_bytes _news _say _say_one _say_all _speak _voice _ear
    heard heard_digest heard_us reached marks_after MARKS_AFTER set_news _announce_news greeted
    GREETINGS_MAX _greetings greetings given_up passed_us speak_us SPEAK_US understood
    tell Tell _tell tell_failure tell_late _tell_unknown _tell_saved who_is_there _theirs
    """,
    )
)
"""Names of the private vocabulary that were replaced in the code of `src`."""
OLD_PARTS = frozenset(
    re.findall(
        r"\w+",
        """
    say says said speak speaks spoke spoken hear hears heard hearing unheard theirs tell tells told
    greet greets greeted greeting fate fates agenda lanes hush who whom nobody somebody anybody
    trap traps cube chorus ups downs haste unclean players
    """,
    )
)
"""Words of the private vocabulary: no name in `src` may contain one, in whichever case."""
COLUMNS_OF_TABLES = frozenset({"said_avg", "heard_lost_percent"})
"""Names in data that users have: their tables stay as they are."""
TEST_OPENING = re.compile(r"test_(?:what|whatever|who|whoever|whom|whose)_")
TEST_PHRASE = re.compile(
    r"without_a_word|in_silence|_of_ours(?:_|$)|passed_over|given_up|_(?:no|some|any|every)body"
    r"|_(?:who|whom|says?|said|tells?|told|hears?|heard|speaks?)(?:_|$)"
)
"""Words in names of tests that replace a behaviour: "X is told" for an error that names X."""


def texts_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string and of each block of comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield first, " ".join(block)
            block = []
        if not block:
            first = token.start[0]
        last = token.start[0]
        block.append(token.string.lstrip("#: "))
    if block:
        yield first, " ".join(block)


def texts_of_markdown(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each paragraph, list item and heading outside of code blocks."""
    line = 1
    for part in re.split(r"(```.*?```|\n\s*\n|\n(?=\s*[-*|#]))", source, flags=re.DOTALL):
        if not part.startswith("```"):
            yield line, " ".join(part.split()).lstrip("-*#| ")
        line += part.count("\n")


def find_words(path: str, source: str) -> list[str]:
    """Return `path:line: words` for each banned opening, phrase or name of a file."""
    python = path.endswith(".py")
    texts = texts_of_python(source) if python else texts_of_markdown(source)
    rules = [OPENING, WHAT, PHRASES, OLD_NAMES]
    rules += [PRONOUNS] if path.startswith(WITHOUT_PRONOUNS) else []
    found = [
        f"{path}:{line}: {match[0]}"
        for line, text in texts
        for rule in rules
        for match in rule.finditer(text)
    ]
    names = re.findall(r"def (test_\w+)", source) if python else []
    bad = [name for name in names if TEST_OPENING.match(name) or TEST_PHRASE.search(name)]
    if python and path.startswith("src/"):
        names = list(identifiers_of(source))
        bad += sorted(name for name in names if name in OLD_IDENTIFIERS or has_old_part(name))
    return found + [f"{path}: {name}" for name in bad]


def has_old_part(name: str) -> bool:
    """Return whether one of the words that a name is made of is an old one."""
    words = re.findall(r"VCube|[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return name not in COLUMNS_OF_TABLES and any(word.lower() in OLD_PARTS for word in words)


def identifiers_of(source: str) -> set[str]:
    """Return the names in a Python file, without those in strings and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def tracked() -> list[str]:
    """Return the Python and Markdown files that are committed or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    try:
        listed = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs a checkout with git")
    return [path for path in listed.stdout.splitlines() if (REPO / path).is_file()]


def test_sentences_and_test_names_use_the_words_of_the_field():
    paths = [path for path in tracked() if path != THIS]
    assert paths
    found = [line for path in paths for line in find_words(path, (REPO / path).read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", '"""Who\tcomes into contact says it."""'),
        ("a.py", "# Fine.\n# Nobody waits\n# for it.\n"),
        ("a.py", 'raise ValueError("it was lost without a word")'),
        ("a.py", "def test_who_leaves_is_forgotten(): ..."),
        ("a.py", "def test_a_crash_of_ours(): ..."),
        ("a.py", "def test_what_is_wrong_is_refused(): ..."),
        ("a.py", "def test_a_wrong_flag_is_told_with_its_name(): ..."),
        ("a.py", "def test_columns_that_nobody_reads(): ..."),
        ("a.py", '"""What a driver needs of a store."""'),
        ("a.md", "It ends. What a node forgets is a prefix, and is closed."),
        ("a.py", "# Whom it concerns has no end"),
        ("a.py", "# trap 3 of the list"),
        ("src/a.py", "endings = deque(maxlen=64)"),
        ("src/a.py", "_speak = None"),
        ("src/a.py", "def last_told(): ..."),
        ("src/a.py", "THEIRS, OURS = range(2)"),
        ("src/a.py", "class SaidBefore: ..."),
        ("src/a.py", '"""Skip messages that nobody holds."""'),
        ("docs/a.md", "Give the key to somebody whom you trust."),
        ("a.md", "Text.\n\n- Whoever is not a member is nobody here\n"),
    ],
)
def test_each_kind_of_banned_words_is_found(path, source):
    assert find_words(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", '"""Return the peers who sent it."""'),
        ("a.md", "## Who is it for?\n"),
        ("a.md", "## What it is not\n"),
        ("a.md", "```\nNobody runs this.\n```\n"),
        ("a.py", "def test_peer_without_group_secret_gets_no_reply(): ..."),
        ("src/a.py", "target = EVERYBODY  # the endings of words"),
        ("src/a.py", "said_avg: float  # a column"),
        ("src/a.py", "essays = shears = VCubeFrame"),
        ("a.py", "told = 1  # tests may"),
    ],
)
def test_plain_sentences_are_not_banned(path, source):
    assert not find_words(path, source)


def test_columns_with_old_names_are_still_in_use():
    paths = [path for path in tracked() if path.startswith("src/") and path.endswith(".py")]
    used = set().union(*(identifiers_of((REPO / path).read_text()) for path in paths))
    assert used >= COLUMNS_OF_TABLES

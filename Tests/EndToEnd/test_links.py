"""Every relative link of the pages resolves: the file is there, and so is the heading that it names."""

import pathlib
import re
import subprocess
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)


def pages():
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, check=True,
                           capture_output=True, text=True)
    return [ROOT / name for name in names.stdout.splitlines() if (ROOT / name).exists()]


def without_code(text):
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)


def anchors(page):
    """As GitHub makes them: lower case, punctuation gone, a hyphen for each space, and a number where one stands twice."""
    seen, found = {}, set()
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1`*\s*$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, re.MULTILINE):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_resolves(page):
    broken = []
    for groups in LINK.findall(without_code(page.read_text())):
        link = groups[0] or groups[1]
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = urllib.parse.unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            broken.append(f"{link}: there is no such heading")
    assert not broken, "\n".join(broken)


def test_pictures_are_small():
    """Whoever looks at the README loads them."""
    large = [path.name for path in (ROOT / "docs/pictures").iterdir() if path.stat().st_size > 200_000]
    assert large == []


def test_the_index_names_every_page():
    """docs/README.md has a line for each page."""
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/README.md").read_text()))
    assert named == {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}

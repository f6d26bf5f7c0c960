"""docs/threat-model.md and docs/streams-protocol.md name the tests that show what they say. They exist."""

import re

from support.hub import ROOT

SWIFT = [(file.name, file.read_text()) for file in (ROOT / "Tests").rglob("*.swift")]
PAGE = (ROOT / "docs/threat-model.md").read_text() + (ROOT / "docs/streams-protocol.md").read_text()


def test_every_test_that_the_threat_model_names_exists():
    cited = 0
    for file, name in re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE):
        text = (ROOT / "Tests/EndToEnd" / file).read_text()
        assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{file}::{name}"
        cited += 1
    for suite, name in re.findall(r"`(\w+Tests)\.(?!swift)(\w+)`", PAGE):
        # A suite may stand in a file of another name, and go on in others.
        suites = [text for file, text in SWIFT
                  if file == f"{suite}.swift" or file.startswith(f"{suite}+") or f"struct {suite} " in text]
        assert any(re.search(rf"@Test\b[\s\S]{{0,600}}?func {name}\(", text) for text in suites), f"{suite}.{name}"
        cited += 1
    for file in re.findall(r"`(test_\w+\.py|\w+Tests\.swift)`", PAGE):
        assert list((ROOT / "Tests").rglob(file)), file
    assert cited > 40

"""Ten stories of an app's day, for the clients that are in use (clients/): nobody is stuck, and nothing is lost, repeated, out of order, or shown to
the wrong user.

Each story is played once, by all clients at the same time on one hub; a test looks at what became of one of them.
"""

import asyncio
import pathlib
import re

import pytest

from clients import ALL, page
from clients.scene import INSTALL, Stage
from clients.stories import ALL as STORIES
from support.channels import INSTALL as INSTALL_RIGHTS
from support.hub import Hub

CELLS = [(story, kind) for story in STORIES for kind in ALL]


@pytest.fixture(scope="module")
def outcomes(cluster):
    """Plays a story when it is first asked for."""
    database = cluster.create_migrated_database("client_stories")
    hub = Hub(database, ROOST_LOOPS="1", ROOST_TIMEOUTS_TOKEN_GRACE="30", ROOST_LIMITS_PAYLOAD_BYTES="20000")
    played = {}
    try:
        with cluster.connect("client_stories") as sql:
            sql.execute(INSTALL)
            sql.execute(INSTALL_RIGHTS)
            hub.watch("public.kit_message")
            hub.start()
            stage = Stage(hub, sql)

            def outcome(story, kind):
                if story not in played:
                    played[story] = asyncio.run(stage.play(story, ALL))
                return played[story][kind]
            yield outcome
    finally:
        hub.remove()


@pytest.mark.parametrize("story, kind", CELLS, ids=[f"{story.name}: {kind.name}" for story, kind in CELLS])
def test_story(outcomes, story, kind):
    obstacle = story.obstacle(kind)
    if obstacle:
        pytest.skip(obstacle)
    outcome = outcomes(story, kind)
    complaints = outcome.complaints(story.may_repeat)
    if story.name in kind.known:
        assert complaints, f"ends well by now: take the entry out of {kind.__name__}.known"
        assert set(complaints) <= {"stuck", "lost", "thrown", "unsubscribed", "failure", "mispresent"}, complaints
    else:
        assert not complaints, complaints


def test_the_page_says_what_was_seen(outcomes, request):
    """`--write-compatibility` writes it."""
    text = page.render(outcomes)
    if request.config.getoption("--write-compatibility"):
        page.PAGE.write_text(text, encoding="utf-8")
    assert page.PAGE.read_text(encoding="utf-8") == text, "make compatibility writes the page anew"


def test_what_differs_from_the_original_is_shown():
    """Each line of docs/supabase.md#differences names the story or the test that shows it."""
    docs = page.PAGE.with_name("supabase.md").read_text(encoding="utf-8")
    section = docs.split("\n## Differences\n")[1].split("\n## ")[0]
    shown = [line.split(" | ")[-1].removesuffix(" |").strip() for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(shown) >= 9
    for proof in shown:
        story = re.fullmatch(r'the story "(.*)"', proof)
        if story:
            assert story[1] in {story.name for story in STORIES}, proof
            continue
        file, test = proof.strip("`").split("::")
        assert f"def {test}(" in (pathlib.Path(__file__).parent / file).read_text(encoding="utf-8"), proof

"""The Grafana dashboard, against a real Prometheus that scrapes a real hub. Grafana itself is not in Debian."""

import json

import pytest

from prometheus import DASHBOARD, promtool
from support.deadline import until

BOARD = json.loads(DASHBOARD.read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
#: Of a hub in no trouble there is nothing to show.
MAY_BE_EMPTY = {"ALERTS"}


def plain(expression):
    """As Grafana sends it."""
    for variable, value in {"$__rate_interval": "1m", "$job": "roost", "$instance": ".*"}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


EXPRESSIONS = {plain(target["expr"]): panel["title"] for panel in PANELS for target in panel["targets"]}


def test_promtool_understands_every_expression(tmp_path):
    rules = [{"record": f"check:{number}", "expr": text} for number, text in enumerate(EXPRESSIONS)]
    file = tmp_path / "rules.yml"
    # JSON is YAML, too.
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    status, said = promtool("check", "rules", file)
    assert status == 0 and f"{len(rules)} rules found" in said, said


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_has_an_answer(prometheus, expression):
    if any(name in expression for name in MAY_BE_EMPTY):
        prometheus.query(expression)
    else:
        until(lambda: prometheus.query(expression), 15, f"something to show in {EXPRESSIONS[expression]}", every=0.2)


def test_the_variables_have_values(prometheus):
    for name in ("job", "instance"):
        query = next(each for each in BOARD["templating"]["list"] if each["name"] == name)["query"]["query"]
        series, label = query.removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        assert label == name
        assert {sample["metric"][label] for sample in prometheus.query(plain(series))}, query


def test_panels_have_a_source_a_unit_a_sentence_and_a_place_of_their_own():
    taken = {}
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
    for panel in PANELS:
        assert panel["datasource"] == SOURCE and panel["fieldConfig"]["defaults"]["unit"]
        assert panel["description"].endswith("."), panel["title"]
        assert all(target["datasource"] == SOURCE and target["legendFormat"] for target in panel["targets"])
    identifiers = [panel["id"] for panel in BOARD["panels"]]
    assert len(identifiers) == len(set(identifiers))

"""The sample configuration and the alert rules, by themselves."""

import re

import pytest

from prometheus import CONFIG, MANUAL, RULES, promtool

TESTS = CONFIG / "roost.rules.test.yml"
BLOCKS = re.split(r"^ +- alert: ", RULES.read_text(), flags=re.MULTILINE)[1:]
#: What each alert's block says, by its name.
ALERTS = {block.partition("\n")[0]: block for block in BLOCKS}


def test_the_sample_configuration_is_right():
    status, said = promtool("check", "config", CONFIG / "prometheus.yml")
    assert status == 0, said
    assert f"{RULES.read_text().count('- alert:') + RULES.read_text().count('- record:')} rules found" in said


def test_alerts_fire_when_they_should_and_not_before():
    status, said = promtool("test", "rules", TESTS)
    assert status == 0 and "SUCCESS" in said, said


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not():
    tests = re.split(r"^  - name: ", TESTS.read_text(), flags=re.MULTILINE)[1:]
    fires = {alert for test in tests for alert in re.findall(r'labels: \'\{alertname="(\w+)"', test)}
    assert fires == set(ALERTS)
    assert [test.split("\n")[0] for test in tests if "exp_samples: []" not in test] == []


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_the_runbook_has_it(name):
    rule = ALERTS[name]
    assert re.search(r"^ +labels: \{severity: (critical|warning)\}$", rule, re.MULTILINE)
    assert re.search(r'^ +summary: ".*\S"$', rule, re.MULTILINE)
    assert re.search(r'^ +description: ".*\.\"$', rule, re.MULTILINE)
    assert f"runbook: docs/operations.md#{name.lower()}\n" in rule
    assert f"\n### {name}\n" in MANUAL.read_text(), "the heading that the runbook's address names"


def test_the_manual_has_no_alert_that_is_gone():
    assert set(re.findall(r"^### (Roost\w+)$", MANUAL.read_text(), re.MULTILINE)) == set(ALERTS)

"""What the check of a fault run (`loadtest/stress.sh --hubs 3`) finds, on histories that are wrong."""

from support import cluster_check
from support.cluster_bounds import BEAT, HEAL, LEASE, Bounds
from support.cluster_history import Absence, History, Return, Row, Sent, Sitting, Trouble
from support.cluster_people import KEPT, TALK


def talked(person="a", hub=0, heard=(), told=(), topic=TALK, ended=None, sent=0, number=1, ids=None, complete=None, late=0.2):
    """A socket that joined at 0, sent `sent` messages at 1, 2, …, and heard those of `b`, by their numbers, so many seconds later."""
    sitting = Sitting(person, number, hub, began=0, joined={topic: 0.5 if number == 1 else 10}, ended=ended, complete=complete)
    sitting.sent[topic] = {n: Sent(n, n + 0.1) for n in range(1, sent + 1)}
    for place, n in enumerate(heard):
        sitting.hears(topic, {"person": "b", "sitting": 1, "n": n}, ids[place] if ids else f"e.{place + 1:x}" if topic == KEPT else None)
        sitting.heard[topic][-1].at = n + late
    sitting.gaps[topic] = list(told)
    return sitting


def found(*sittings, **parts):
    return list(cluster_check.complaints(History(list(sittings), **parts), TALK, KEPT))


def test_the_check_finds_messages_that_are_missing():
    publisher = talked("b", sent=5)
    assert found(publisher, talked(heard=[1, 2, 3, 4, 5])) == []
    assert "lacks in realtime:talk, and was not told: b/1 on hub0:3" in found(publisher, talked(heard=[1, 2, 4, 5]))[0]
    assert "b/1 on hub0:4-5" in found(publisher, talked(heard=[1, 2, 3]))[0]
    # Told of afterwards is told; before is not.
    assert found(publisher, talked(heard=[1, 2, 4, 5], told=[3.5])) == []
    assert found(publisher, talked(heard=[1, 2, 4, 5], told=[2.5])) != []
    # What was on its way to a socket that ended is no loss; a hole before what came is one.
    assert found(publisher, talked(heard=[1, 2, 3], ended=6)) == []
    assert found(publisher, talked(heard=[1, 2, 3], ended=60)) != []
    assert found(publisher, talked(heard=[1, 3], ended=6)) != []


def test_the_check_finds_what_comes_too_late():
    publisher = talked("b", sent=3)
    assert found(publisher, talked(heard=[1, 2, 3], late=HEAL)) == []
    assert "3 messages too late in realtime:talk, by up to 0.40 s" in found(publisher, talked(heard=[1, 2, 3], late=HEAL + 0.5))[0]
    # What is told too late is too late.
    assert found(publisher, talked(heard=[1, 2], told=[3 + HEAL])) == []
    assert "by up to 2.90 s" in found(publisher, talked(heard=[1, 2], told=[6 + HEAL]))[0]
    # Not while hubs could not act as one, or the machine itself stood still.
    fault = [Trouble(2.5, 8, "")]
    late = talked(heard=[1, 2], told=[8 + HEAL])
    assert found(publisher, late, troubles=fault) == [] and found(publisher, late, stalled=lambda since, until: 5) == []
    assert found(publisher, talked(heard=[1, 2], told=[8.5 + HEAL]), troubles=fault) != []
    # Somebody else's fault is none.
    assert found(publisher, late, troubles=[Trouble(2.5, 8, "", frozenset([2]))]) != []
    assert found(publisher, late, troubles=[Trouble(2.5, 8, "", frozenset([0]))]) == []


def test_a_death_is_known_when_the_lease_is_over():
    def known(*troubles):
        return Bounds(History(troubles=list(troubles))).due(9, 0) - HEAL
    death = Trouble(10, 10.5, "", frozenset([0]), is_death=True)
    assert known(death) == 10 + LEASE
    # Whoever just lost Redis judges nobody.
    assert known(death, Trouble(12, 14, "")) == 14 + LEASE + BEAT
    assert known(death, Trouble(12, 14, "", frozenset([1]))) == 14 + LEASE + BEAT
    assert known(Trouble(10, 19, "", frozenset([0]), is_death=True)) == 19
    # So is the end of a hub that was told to stop and could not say good-bye; of one that could it is known at once.
    assert known(Trouble(10, 12.5, "", frozenset([0]), unheard=12)) == 12 + LEASE
    assert known(Trouble(10, 12.5, "", frozenset([0]))) == 12.5


def test_the_check_finds_repeats_and_disorder():
    publisher = talked("b", sent=3)
    assert "heard b/1:2 twice" in found(publisher, talked(heard=[1, 2, 2, 3]))[0]
    assert "heard b/1:2 behind 3" in found(publisher, talked(heard=[1, 3, 2]))[0]


def test_the_check_finds_what_a_history_lacks():
    publisher = talked("b", sent=5, topic=KEPT, heard=[1, 2, 3, 4, 5])
    first = talked(heard=[1, 2], topic=KEPT, ended=2.5)
    assert found(publisher, first, talked(heard=[3, 4, 5], topic=KEPT, number=2, complete=True, ids=["e.3", "e.4", "e.5"])) == []
    missing = found(publisher, first, talked(heard=[4, 5], topic=KEPT, number=2, complete=True, ids=["e.4", "e.5"]))
    assert "over 2 sockets, and was not told: b/1 on hub0:3" in missing[0]
    assert found(publisher, first, talked(heard=[4, 5], topic=KEPT, number=2, complete=False, ids=["e.4", "e.5"])) == []


def test_the_check_finds_histories_of_different_orders():
    publisher = talked("b", sent=3, topic=KEPT, heard=[1, 2, 3])
    assert "the id e.2 is" in found(publisher, talked(heard=[1, 2, 3], topic=KEPT, ids=["e.1", "e.4", "e.2"]))[0]
    assert any("behind e.2" in text for text in found(publisher, talked(heard=[1, 2, 3], topic=KEPT, ids=["e.2", "e.1", "e.3"])))
    several = found(publisher, talked(heard=[1, 2, 3], topic=KEPT, ids=["f.1", "f.2", "f.3"]))
    assert len(several) == 3 and "without any trouble" in several[0]
    # Not where a hub could not reach the others.
    listener = talked(heard=[1, 2, 3], topic=KEPT, ids=["f.1", "f.2", "f.3"])
    assert found(publisher, listener, troubles=[Trouble(0, 5, "", frozenset([1]))]) == []


def test_the_check_finds_rows_that_are_lost_and_out_of_order():
    committed = [Row(1, 0), Row(2, 0), Row(1, 1)]

    def of(*rows):
        return found(rows={"a": [Row(*row) for row in rows]}, committed=committed)
    assert of((1, 0), (2, 0), (1, 1)) == []
    # What is repeated, from one place on and in order.
    assert of((1, 0), (2, 0), (1, 1), (2, 0), (1, 1)) == []
    assert "lacks 1 of 3 rows" in of((1, 0), (1, 1))[0]
    assert "behind version 1" in of((2, 0), (1, 1), (1, 0))[0]
    assert "ends with version 0 of row 1" in of((1, 0), (1, 1), (2, 0), (1, 0))[0]
    assert "nobody committed" in of((1, 0), (2, 0), (1, 1), (3, 0))[0]


def test_the_check_finds_false_leaves_and_ghosts():
    def watcher(*diffs):
        sitting = Sitting("w", 1, 0)
        sitting.shows({"a": {"metas": [{"phx_ref": "1"}]}})
        for diff in diffs:
            sitting.changes({"joins": {}, "leaves": {}} | diff)
        return sitting
    ref = {key: {"a": {"metas": [{"phx_ref": key}]}} for key in "12"}
    left, back = watcher({"leaves": ref["1"]}), watcher({"leaves": ref["1"]}, {"joins": ref["2"]})
    assert "saw a leave" in found(left)[0]
    absence = Absence("a", left.began - 1, None, "away")
    assert found(left, absences=[absence]) == []
    assert found(back, truth={"a"}, absences=[absence]) == []
    assert "does not show ['a']" in found(left, truth={"a"}, absences=[absence])[0]
    # Once for each absence, and not long after it.
    twice = watcher({"leaves": ref["1"]}, {"joins": ref["2"]}, {"leaves": ref["2"]})
    assert "saw a leave" in found(twice, absences=[absence])[0]
    assert "saw a leave" in found(left, absences=[Absence("a", left.began - 20, left.began - 10, "away")])[0]
    # Whoever came back within his window has not left, unless his hubs could not be told.
    def came_back(after, **parts):
        lost = left.began - after
        return found(left, truth=set(), returns=[Return("a", lost, lost + after, 3, frozenset([0, 1]))], **parts)
    assert "saw a leave" in came_back(2)[0] and came_back(4) == []
    assert came_back(2, stalled=lambda since, until: 1) == []
    assert came_back(2, troubles=[Trouble(left.began - 2.5, left.began + 2, "", frozenset([1]))]) == []
    assert "saw a leave" in came_back(2, troubles=[Trouble(left.began - 2.5, left.began + 2, "", frozenset([2]))])[0]
    assert "saw a leave" in came_back(2, troubles=[Trouble(left.began - 4, left.began - 1.5, "")])[0]
    # Who says something else does not leave.
    assert found(watcher({"leaves": ref["1"], "joins": ref["2"]}), truth={"a"}) == []
    assert "shows ['a'], who are gone" in found(watcher())[0]
    assert "more than once" in found(watcher({"joins": ref["2"]}), truth={"a"})[0]

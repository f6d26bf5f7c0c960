"""Many pushes to browsers through 429, 500, 410, GOAWAY, time-outs, a wrong clock, and kills of the hub and of the push service: at most once
each, in order for each browser, and all of them accounted for.

`ROOST_WEBPUSH_STORM="messages=2000 browsers=5 faults=8"` makes it a long one: messages × browsers pushes.
"""

import asyncio
import collections
import os
import random
import time

from support.chat import A, ADA, Principal
from support.deadline import eventually
from support.webpush import Browser, WebPushHub, name_of

SHORT = "seed=1 messages=40 browsers=3 faults=3 rate=20"
#: What the push service does to some of the requests.
RULES = [
    {"every": 23, "do": {"answer": "", "status": 429, "retry_after": 1}}, {"every": 31, "do": {"answer": "", "status": 500}},
    {"every": 37, "do": {"reset": 7}}, {"every": 41, "do": {"goaway": "graceful"}}, {"every": 43, "do": {"goaway": "before"}},
    {"every": 47, "do": {"abort": "after"}}, {"every": 53, "do": {"delay": 0.5}}, {"every": 59, "do": {"stall": "after"}},
]


async def test_at_most_once_in_order_and_all_accounted_for(cluster, name):
    wanted = {"rate": 20, **dict(word.split("=") for word in os.environ.get("ROOST_WEBPUSH_STORM", SHORT).split())}
    seed, messages, browsers, faults, rate = (int(wanted.get(key, 1)) for key in ("seed", "messages", "browsers", "faults", "rate"))
    chance = random.Random(seed)
    async with WebPushHub(cluster, name) as chat:
        with chat.sql() as sql:
            readers = []
            for number in range(browsers):
                who = Principal(f"reader {number}", sub=f"99999999-0000-4000-8000-{number:012}")
                sql.execute("insert into users (id, name) values (%s, 'Somebody')", [who.sub])
                sql.execute("insert into conversation_participants (conversation_id, user_id) values (%s, %s)", [A, who.sub])
                readers.append(await Browser(chat, who).register())
            chat.apns.script(*RULES)
            said, began = [], time.monotonic()
            moments = {(number + 1) * messages // (faults + 1): number for number in range(faults)}
            for number in range(messages):
                said.append(str(chat.say(sql, ADA, f"message {number}")))
                if number in moments:
                    await fault(chat, moments[number], chance)
                await asyncio.sleep(chance.expovariate(rate))
            chat.apns.forget_script()
            waiting = "select count(*) from roost.alert where state in ('due', 'held', 'elsewhere')"
            await eventually(lambda: sql.execute(waiting).fetchone() == (0,), 300, lambda: sql.execute(
                "select state, reason, count(*) from roost.alert group by 1, 2").fetchall(), every=0.5)
            open_ones = "select count(*) from roost.alert_device where outcome is null"
            await eventually(lambda: sql.execute(open_ones).fetchone() == (0,), 120, "no push is on its way", every=0.5)
            outcomes = {(message.rpartition(" ")[2], token.rpartition("/")[2]): outcome for message, token, outcome in sql.execute(
                "select message, token, outcome from roost.alert_device").fetchall()}
            shown = collections.defaultdict(list)
            for record in chat.apns.taken:
                shown[record["token"]].append(record["payload"]["data"]["messageId"])
            counts = collections.Counter()
            for reader in readers:
                came = shown[reader.device]
                assert len(came) == len(set(came)), [each for each, count in collections.Counter(came).items() if count > 1]
                assert came == sorted(came, key=int), came
                for message in said:
                    outcome = outcomes.get((message, name_of(reader.subscription)))
                    counts[outcome, message in came] += 1
                    # Delivered is shown; what nobody knows of may be; all else is not.
                    assert outcome is not None, f"nothing is known of {message}"
                    assert outcome != "delivered" or message in came, f"{message} is said to be there, and is not"
                    assert message not in came or outcome in ("delivered", "unanswered", "unknown"), (message, outcome)
            print(f"\n{messages} messages to {browsers} browsers in {time.monotonic() - began:.0f} s, (outcome, shown): {dict(counts)}; "
                  f"{chat.apns.summary['answers']}")
            assert counts["delivered", True] > messages * browsers // 2
            assert chat.apns.violations == []


async def fault(chat, number, chance):
    kind = ("kill", "service", "clock", "freeze")[number % 4]
    print(f"{kind}")
    if kind == "kill":
        chat.hub.kill()
        await asyncio.to_thread(chat.hub.start)
    elif kind == "service":
        # It is gone, and knows nobody when it comes back: its subscriptions would all be 404. So it is cut off instead.
        chat.apns.connections("refuse", chance.uniform(0.5, 2))
    elif kind == "clock":
        chat.apns.set(clock_offset=chance.choice([-30, 30]) * 3600)
    else:
        chat.apns.connections("freeze", chance.uniform(0.5, 2))

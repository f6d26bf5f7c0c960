"""Every message is received or alerted, whatever happens to phones, hubs and Postgres; never alerted twice.

`ROOST_PUSH_STORM="seed=7 messages=2000 phones=200 faults=16"` makes it a long one; with `capture=wal`, rows are captured from the WAL.
"""

import os

from support.cluster import Cluster
from support.push_storm import Storm

SHORT = "seed=1 messages=150 phones=25 rate=25 faults=3 every=3"


async def test_every_message_is_received_or_alerted():
    wanted = dict(word.split("=") for word in os.environ.get("ROOST_PUSH_STORM", SHORT).split())
    capture = wanted.pop("capture", "triggers")
    # Its Postgres is killed.
    cluster = Cluster()
    try:
        cluster.start()
        report = await Storm(cluster, "push_storm", capture=capture, **{name: int(value) for name, value in wanted.items()}).run()
        print(f"\n{report}")
        for each in report.unexplained:
            print("both, without trouble:", each)
        report.verify()
    finally:
        cluster.remove()

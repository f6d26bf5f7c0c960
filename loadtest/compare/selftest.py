"""Does every server deliver all, and is it noticed if one does not?"""

from failure import Undelivered
from peers.python import Python
from plan import Shape
from rounds import measure

SHAPES = [Shape(100, size, window, deliveries=10_000, warm_deliveries=200, timeout=20)
          for size, window in ((150, 1), (500, 16))]


def run(peers, client):
    """The exit status."""
    failed = 0
    for peer in peers:
        peer.open()
        try:
            for shape in SHAPES:
                outcome = measure(peer, client, shape)
                is_good = not isinstance(outcome, Undelivered)
                failed += not is_good
                print(f"{peer.title}, {shape.size} bytes, {shape.window} at a time: "
                      + (f"all of {outcome.deliveries:,} delivered" if is_good else f"FAILED: {outcome}"), flush=True)
        finally:
            peer.close()
    for peer in peers:
        if isinstance(peer, Python):
            failed += not notices_loss(peer, client)
    print(f"{failed} failed" if failed else "All is well.")
    return 1 if failed else 0


def notices_loss(peer, client):
    peer.lose = 50
    try:
        outcome = measure(peer, client, Shape(100, 150, 1, deliveries=10_000, warm_deliveries=200, timeout=3))
    finally:
        peer.lose = 0
    is_noticed = isinstance(outcome, Undelivered)
    print(f"A server that loses messages: {f'noticed ({outcome})' if is_noticed else 'FAILED: not noticed'}")
    return is_noticed

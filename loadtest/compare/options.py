"""The command line."""

import argparse
import pathlib
import sys

import peers
import plan


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(64, f"compare: {message}\n")


def parse_options(description):
    parser = Parser(prog="loadtest/compare.sh", description=description)
    add = parser.add_argument
    add("--quick", action="store_true", help="under five minutes on a quiet machine: one size, fewer sockets, 1 and 4 "
        "messages at a time, three rounds")
    add("--peers", metavar="NAME[,NAME]", help=f"only these beside the limit, of {', '.join(peers.NAMES[1:])}")
    add("--rounds", type=positive, help="interleaved rounds (3)")
    add("--seed", type=int, default=1, help="of the order in which a round visits the servers (1)")
    add("--json", type=pathlib.Path, metavar="FILE", help="the raw figures of all rounds, rewritten after every round")
    add("--tables", type=pathlib.Path, metavar="FILE", help="make the tables of such a file again, and measure nothing")
    add("--write", type=pathlib.Path, metavar="FILE", help="put the tables between the markers of this document, as "
        "docs/performance.md")
    add("--self-test", action="store_true", help="a minute: does every server deliver all, and is it noticed if one "
        "does not?")
    add("--roost", type=pathlib.Path, default=".build/release/roost", help="the hub to measure (.build/release/roost)")
    add("--roost-load", type=pathlib.Path, default=".build/release/roost-load", help="the load client where there is no wsload "
        "(.build/release/roost-load)")
    add("--referee", type=pathlib.Path, default="../shared/bench", help="the folder of rawfan and wsload (../shared/bench)")
    add("--own-limit", action="store_true", help="take loadtest/limit for the limit, even where there is a rawfan")
    add("--list-missing-packages", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = peers.NAMES if options.peers is None else options.peers.split(",")
    if unknown := [name for name in chosen if name not in peers.NAMES]:
        parser.error(f"there is no peer {', '.join(unknown)}; there are {', '.join(peers.NAMES)}")
    if options.json and not options.json.resolve().parent.is_dir():
        parser.error(f"there is no folder {options.json.parent} for {options.json.name}")
    # The limit is what the others are held against.
    options.peers = [name for name in peers.NAMES if name in chosen or name == peers.NAMES[0]]
    options.plan = (plan.quick if options.quick else plan.full)(options.rounds, options.seed)
    return options


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number

"""Prints manual pages, in the language of man(7), from what states the facts already.

    python3 scripts/manual commands BINARY FRAGMENT    roost(1): the command line as the program itself tells it
    python3 scripts/manual settings FILE VERSION       roost.yaml(5): the comments of config/roost.yaml

FRAGMENT is a file with the sections that a program cannot tell. The date is that of SOURCE_DATE_EPOCH, else today's.
"""

import datetime
import json
import os
import subprocess
import sys

import commands
import settings


def date():
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now()
    return moment.strftime("%Y-%m-%d")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(arguments):
    match arguments:
        case ["commands", binary, fragment]:
            told = json.loads(output(binary, "--experimental-dump-help"))["command"]
            version = output(binary, "--version").split()[0] if commands.has_version(told) else ""
            with open(fragment) as file:
                print(commands.page(told, version, date(), file.read()), end="")
        case ["settings", path, version]:
            with open(path) as file:
                print(settings.page(file.read(), version, date()), end="")
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])

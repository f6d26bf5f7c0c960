#!/usr/bin/env bash
# Makes the pictures of docs/pictures anew, from the pages as they are: scripts/pictures.sh [FOLDER] [--every-view]
# With --every-view also each view of the live page, on a desk and on a phone, for whoever changes how it looks.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh --tests --pictures
swift build -c release --product roost
swift build -c release --product roost-load
.venv/bin/python scripts/pictures.py "$@"

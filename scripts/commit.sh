#!/usr/bin/env bash
# Prints the commit of the tree, with `+changes` behind it if there are any; nothing where there is no repository.
cd "$(dirname "$0")/.."
commit=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
[[ -z $(git status --porcelain --untracked-files=no) ]] || commit+=+changes
echo "$commit"

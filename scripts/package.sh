#!/usr/bin/env bash
# Builds the Debian packages roost and roost-load in .build/package; `make package` calls it.
#
# Swift's runtime is linked into the programs; the rest of what they need is Debian's, and dpkg-shlibdeps finds out which
# packages that is. They are built in a folder of their own, so that the usual build stays as it is.
#
#   --version VERSION   of the packages, instead of what `roost --version` says
#   --binaries FOLDER   takes roost and roost-load from there
#   --debug-symbols     makes packages with debug symbols, too
set -euo pipefail
cd "$(dirname "$0")/.."

usage="usage: scripts/package.sh [--version VERSION] [--binaries FOLDER] [--debug-symbols]"
output=.build/package
version=
binaries=
options=(noautodbgsym nocheck)
while [[ $# -gt 0 ]]; do
    case $1 in
    --version) version=${2?$usage} && shift 2 ;;
    --binaries) binaries=${2?$usage} && shift 2 ;;
    --debug-symbols) options=(nocheck) && shift ;;
    *)
        echo "$usage" >&2
        exit 64
        ;;
    esac
done

# Linked with what makes an exploit harder, and with an id by which debug symbols are found.
build() {
    local flags=(-c release --static-swift-stdlib --scratch-path "$output/swift")
    flags+=(-Xlinker --build-id=sha1 -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now)
    swift build "${flags[@]}" --product roost
    swift build "${flags[@]}" --product roost-load
    binaries=$(swift build "${flags[@]}" --show-bin-path)
}

# What a program tells of itself goes into its manual page and its completions, so they have to be made from what is shipped.
describe() {
    local program=$1 binary=$stage/bin/$1
    python3 scripts/manual commands "$binary" "config/man/$program.1" >"$stage/man/$program.1"
    # bash reads it and does not run it, so it is no program.
    "$binary" --generate-completion-script bash | sed '1{/^#!/d}' >"$stage/completions/bash/$program"
    "$binary" --generate-completion-script zsh >"$stage/completions/zsh/_$program"
    "$binary" --generate-completion-script fish >"$stage/completions/fish/$program.fish"
}

write_changelog() {
    local maintainer
    maintainer=$(sed -n 's/^Maintainer: //p' "$stage/debian/control")
    cat >"$stage/debian/changelog" <<END
roost ($version) stable; urgency=medium

  * Roost $("$stage/bin/roost" --version).

 -- $maintainer  $(date --utc --date="@$SOURCE_DATE_EPOCH" +"%a, %d %b %Y %H:%M:%S +0000")
END
}

# A package of the same commit is the same, byte by byte.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
# `roost --version` names it. Where there is no repository, as in a container, whoever builds says it.
ROOST_COMMIT=${ROOST_COMMIT:-$(scripts/commit.sh)}
export SOURCE_DATE_EPOCH ROOST_COMMIT PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8

[[ -n $binaries ]] || build
stage=$output/stage
rm -rf "$stage"
mkdir -p "$stage"/{bin,man,docs} "$stage"/completions/{bash,zsh,fish}
install -m 755 "$binaries/roost" "$binaries/roost-load" "$stage/bin/"
cp -R config/debian "$stage/debian"
rm "$stage/debian/environment"
cp config/debian/environment config/roost.yaml "$stage/"
cp config/roost.service "$stage/debian/roost.service"
cp docs/*.md "$stage/docs/"
[[ -n $version ]] || version=$("$stage/bin/roost" --version | cut -d" " -f1)
describe roost
describe roost-load
python3 scripts/manual settings config/roost.yaml "$version" >"$stage/man/roost.yaml.5"
write_changelog
(cd "$stage" && DEB_BUILD_OPTIONS="${options[*]}" dpkg-buildpackage --build=binary --no-sign >../build.log 2>&1) || {
    tail -30 "$output/build.log" >&2
    echo "package: dpkg-buildpackage failed; all of it is in $output/build.log" >&2
    exit 70
}
ls "$output"/*_"${version}"_*.deb

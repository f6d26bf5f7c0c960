#!/usr/bin/env bash
# Makes what is given away of a version, in .build/release-VERSION; `make release` calls it.
#
#   roost-VERSION-linux-ARCH.tar.gz   programs, manual pages, completions, configuration, documentation
#   roost_VERSION_ARCH.deb            and that of roost-load
#   SHA256SUMS                        of all of them
#
# The same commit gives the same files, byte by byte, if it is built in the same place with the same tools. Swift's runtime is
# linked into the programs; Debian 12's libraries are not (INSTALL in the archive names their packages).
#
#   --binaries FOLDER   takes roost and roost-load from there, and builds nothing
#   --output FOLDER     instead of .build/release-VERSION
#   --any               also from a tree with changes that are not committed
set -euo pipefail
cd "$(dirname "$0")/.."

usage="usage: scripts/release.sh [--binaries FOLDER] [--output FOLDER] [--any]"
output=
any=false
arguments=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --binaries) arguments+=(--binaries "${2?$usage}") && shift 2 ;;
    --output) output=${2?$usage} && shift 2 ;;
    --any) any=true && shift ;;
    *)
        echo "$usage" >&2
        exit 64
        ;;
    esac
done

commit=$(scripts/commit.sh)
if [[ $commit == *+changes && $any == false ]]; then
    echo "release: the tree has changes that are not committed; commit them, or pass --any for a try" >&2
    exit 65
fi
version=$(sed -n 's/^ *static let version = "\(.*\)"$/\1/p' Sources/roost/Roost.swift)
grep -q "^## \[$version\]" CHANGELOG.md || {
    echo "release: CHANGELOG.md has no section [$version]" >&2
    exit 65
}

export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
scripts/package.sh "${arguments[@]}" >/dev/null
packages=.build/package
stage=$packages/stage
architecture=$(dpkg --print-architecture)
output=${output:-.build/release-$version}
name=roost-$version-linux-$architecture
rm -rf "$output"
mkdir -p "$output/$name"/{bin,man,completions,config,docs}

# Those of the packages, which are without symbols.
install -m 755 "$stage"/debian/roost/usr/bin/roost "$stage"/debian/roost-load/usr/bin/roost-load "$output/$name/bin/"
install -m 644 "$stage"/man/* "$output/$name/man/"
cp -R "$stage/completions/." "$output/$name/completions/"
install -m 644 config/roost.yaml config/roost.service config/compose.yaml config/compose.cluster.yaml "$output/$name/config/"
cp -R config/kubernetes config/prometheus config/grafana "$output/$name/config/"
install -m 644 docs/*.md "$output/$name/docs/"
install -m 644 README.md CHANGELOG.md SECURITY.md LICENSE "$output/$name/"
# The links of the pages that lead into the repository lead nowhere here, which is better than no pages.
cat >"$output/$name/INSTALL" <<END
Roost $("$stage/bin/roost" --version)

On Debian 12 take the packages beside this archive: they bring a service, a user and what is needed. Elsewhere put the programs of bin/
where you like. They need these libraries of Debian 12, or the same versions of them:

$(dpkg-deb --field "$packages"/roost_"$version"_"$architecture".deb Depends | tr ',' '\n' | grep -v adduser | sed 's/^ */  /')

Then: bin/roost demo --help, and README.md.
END
find "$output/$name" -type d -exec chmod 755 {} +
tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    --directory "$output" "$name" | gzip --no-name -9 >"$output/$name.tar.gz"
rm -r "${output:?}/$name"
cp "$packages"/roost_"$version"_"$architecture".deb "$packages"/roost-load_"$version"_"$architecture".deb "$output/"
(cd "$output" && sha256sum -- *.tar.gz *.deb >SHA256SUMS)
(cd "$output" && ls -l)

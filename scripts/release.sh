#!/usr/bin/env bash
# Makes what is given away of a version, in .build/release-VERSION; `make release` calls it.
#
#   roost-VERSION-linux-ARCH.tar.gz   programs with their libraries, manual pages, completions, configuration, documentation
#   roost_VERSION_ARCH.deb            and that of roost-load
#   SHA256SUMS                        of all of them
#
# The same commit gives the same files, byte by byte, if it is built in the same place with the same tools. Swift's runtime is
# linked into the programs. Other libraries are Debian's: the packages depend on them, and the archive has them in lib/, so that it runs
# wherever glibc is not older than that of the machine that made it (scripts/carry-libraries.sh, scripts/test-release.sh).
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
scripts/carry-libraries.sh "$output/$name"
newest_glibc=$(objdump -T "$output/$name"/bin/* "$output/$name"/lib/* 2>/dev/null | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
size() { du -sh --apparent-size "$output/$name/$1" | cut -f1; }
cat >"$output/$name/INSTALL" <<END
Roost $("$stage/bin/roost" --version)

For Linux on $architecture with glibc ${newest_glibc#GLIBC_} or later (\`ldd --version\`); tried on Debian 12, 13 and sid. Nothing has to be installed:
bin/ ($(size bin)) finds its libraries in lib/ ($(size lib)), and LICENSES ($(size LICENSES)) says what these are.

  tar -xzf $name.tar.gz
  $name/bin/roost --version
  $name/bin/roost demo               a sample chat; needs programs of Postgres (Debian: apt-get install postgresql)

README.md goes on with your own database. A few things to know:

- Keep bin/ and lib/ together; a link to bin/roost from a folder of PATH works.
- The hub checks the certificates of others (of jwks.url, of Apple) by /etc/ssl/certs/ca-certificates.crt, which is Debian's package
  ca-certificates. Where a system keeps them elsewhere, put a link there.
- To listen on a port below 1024, use the service's AmbientCapabilities=CAP_NET_BIND_SERVICE. After setcap, the system's loader does not
  look beside a program.
- Security updates of the system do not reach lib/: take the next archive, or on Debian the packages beside this archive, which use
  the system's libraries. They bring a service and a user, too. config/roost.service is the unit, to be changed to where bin/ is.
END
find "$output/$name" -type d -exec chmod 755 {} +
tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
    --directory "$output" "$name" | gzip --no-name -9 >"$output/$name.tar.gz"
rm -r "${output:?}/$name"
cp "$packages"/roost_"$version"_"$architecture".deb "$packages"/roost-load_"$version"_"$architecture".deb "$output/"
(cd "$output" && sha256sum -- *.tar.gz *.deb >SHA256SUMS)
(cd "$output" && ls -l)

#!/usr/bin/env bash
# Gives the programs in FOLDER/bin a private FOLDER/lib with every shared library that they need but glibc's own, and FOLDER/LICENSES
# with the licences of these and of what is linked into the programs; scripts/release.sh calls it for the archive.
#
#   scripts/carry-libraries.sh FOLDER
#
# The libraries are those of this machine's packages, found by the programs and by each other relative to where they lie ($ORIGIN), and
# not by LD_LIBRARY_PATH, which the programs of Postgres that `roost demo` starts would inherit.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1?"usage: scripts/carry-libraries.sh FOLDER"}
programs=("$folder/bin/roost" "$folder/bin/roost-load")

fail() {
    echo "carry-libraries: $*" >&2
    exit 70
}

# "NAME PATH" of each library that the given files need, and of those that these need in turn.
list_needed() {
    ldd "$@" | sed -nE 's/^\s+(\S+) => (\/\S+) \(0x.*/\1 \2/p; s/^\s+(\S+) => not found.*/\1 missing/p' | sort -u
}

# The package that a file is of. Debian has moved /lib to /usr/lib, and dpkg knows some files by the old name.
find_package() {
    local path
    path=$(realpath "$1")
    { dpkg-query --search "$path" 2>/dev/null || dpkg-query --search "${path#/usr}"; } | head -n 1 | cut -d: -f1
}

mkdir -p "$folder/lib" "$folder/LICENSES/common"

# libwebsockets loads it by itself, so that nobody names it.
events=$(dpkg-query --listfiles libwebsockets-evlib-uv | grep '/libwebsockets-evlib_uv\.so$') || fail "libwebsockets-evlib-uv is not installed"
packages=()
carry() { # NAME PATH: all but glibc's, as a process has one glibc, that of the system's own loader
    local package
    package=$(find_package "$2") || fail "$1 is $2, which is of no package"
    [[ $package != libc6 ]] || return 0
    install -m 644 "$2" "$folder/lib/$1"
    patchelf --set-rpath '$ORIGIN' "$folder/lib/$1"
    packages+=("$package")
}
while read -r name path; do
    [[ $path != missing ]] || fail "$name is needed and not installed"
    carry "$name" "$path"
done < <(list_needed "${programs[@]}" "$events")
carry "${events##*/}" "$events"
clang -shared -fPIC -O2 -Wall -Werror -s -o "$folder/lib/libroost-plugins.so" config/archive/plugins.c
for program in "${programs[@]}"; do patchelf --set-rpath '$ORIGIN/../lib' "$program"; done
# The first that is named is the first that is asked for a function.
patchelf --add-needed libroost-plugins.so "$folder/bin/roost"

# Licences: of the libraries by Debian's packages, of Swift's runtime, and of the packages of Package.swift.
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
for package in "${packages[@]}"; do
    cp -L "/usr/share/doc/$package/copyright" "$folder/LICENSES/$package" || fail "$package has no file of its licence here"
done
cp "$(dirname "$(readlink -f "$(command -v swift)")")/../share/swift/LICENSE.txt" "$folder/LICENSES/swift"
linked=()
for checkout in .build/package/swift/checkouts/* .build/checkouts/*; do
    licence=$(find "$checkout" -maxdepth 1 -iname 'license*' 2>/dev/null | head -n 1)
    [[ -n $licence ]] || continue
    cp "$licence" "$folder/LICENSES/${checkout##*/}"
    linked+=("${checkout##*/}")
done
[[ ${#linked[@]} -gt 0 ]] || fail "the Swift packages that are linked into the programs are not here with their licences; build first"
# What Debian's files refer to by path.
grep -d skip -ohE '/usr/share/common-licenses/[A-Za-z]+(-[0-9.]*[0-9])?' "$folder"/LICENSES/* | sort -u | while read -r licence; do
    [[ ! -f $licence ]] || cp -L "$licence" "$folder/LICENSES/common/"
done
cat >"$folder/LICENSES/README" <<END
Roost's own licence is LICENSE, one folder up. bin/ has Swift's runtime and these packages linked into it: $(
    printf '%s\n' "${linked[@]}" | sort -u | paste -sd, | sed 's/,/, /g').

lib/ has libraries of these packages of $(. /etc/os-release && echo "$PRETTY_NAME"), unchanged but for where each looks for the others.
A file here is named after the package; common/ has the texts that several of them refer to. Their sources are Debian's, which keeps
those of every version (snapshot.debian.org, or \`apt-get source PACKAGE=VERSION\`). You may put other builds of the same libraries in
their place.

$(dpkg-query --show --showformat '  ${Package} ${Version} (source ${source:Package} ${source:Version})\n' "${packages[@]}")
END
chmod -R u=rwX,go=rX "$folder/lib" "$folder/LICENSES"

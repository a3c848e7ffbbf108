#!/usr/bin/env bash
# Makes a root file system of programs and the libraries that they load.
#
#   deploy/stage.sh FOLDER PROGRAM_OR_LIBRARY...
#
# Programs go to usr/bin, libraries to where the loader looks without a cache. The
# list usr/share/sfmamba/contents.tsv says what each is: name, bytes, Debian package
# and version ("-": not Debian's). The sizes are printed.
#
# All that programs load must be found, except NVIDIA's driver, which is the host's.
# Libraries that are named are parts loaded on demand, some for hardware that is not
# there: what they lack is left out.
set -euo pipefail

if [ $# -lt 2 ]; then
  echo "usage: deploy/stage.sh FOLDER PROGRAM_OR_LIBRARY..." >&2
  exit 2
fi
folder=$1
shift
LIBRARIES=usr/lib/x86_64-linux-gnu
DRIVER='^lib(cuda|nvidia-ml)\.so'

fail() {
  echo "stage: $*" >&2
  exit 1
}

# The paths of what a file loads, and "name missing", one a line.
loaded_by() {
  ldd "$1" | awk '/=> not found/ {print $1, "missing"; next} /=> \// {print $3}'
}

contents=$folder/usr/share/sfmamba/contents.tsv
mkdir -p "$folder"/{etc,lib64,tmp,usr/bin,$LIBRARIES,usr/share/sfmamba,var/cache/sfmamba}
# Mounted over; a volume of an engine's takes their modes.
chmod 1777 "$folder/tmp" "$folder/var/cache/sfmamba"

declare -A origin=()  # Of each place in the folder, the real path.
put() {               # A file and the folder it goes to; once.
  local place
  place=$2/$(basename "$1")
  [ -z "${origin[$place]:-}" ] || return 0
  cp -L "$1" "$folder/$place"
  origin[$place]=$(readlink -f "$1")
}

for file in "$@"; do
  [ -f "$file" ] || fail "$file is not there"
  if [[ $(basename "$file") == *.so* ]]; then
    part=true
    put "$file" $LIBRARIES
  else
    part=false
    put "$file" usr/bin
  fi
  while read -r library missing; do
    if [ -z "$missing" ]; then
      put "$library" $LIBRARIES
    elif ! $part && ! [[ $library =~ $DRIVER ]]; then
      fail "$file: $library is not found"
    fi
  done < <(loaded_by "$file")
done
put /lib64/ld-linux-x86-64.so.2 lib64

echo 'sfmamba:x:65532:65532::/nonexistent:/usr/sbin/nologin' >"$folder/etc/passwd"
echo 'sfmamba:x:65532:' >"$folder/etc/group"
echo 'hosts: files dns' >"$folder/etc/nsswitch.conf"

# Packages' paths may be older than /lib's move into /usr.
declare -A package=()
while IFS=: read -r name _ path; do  # "name:architecture: path"
  [ -z "$path" ] || package[${path# }]=$name
done < <(dpkg-query -S "${origin[@]}" "${origin[@]#/usr}" 2>/dev/null)
declare -A version=()
while read -r name number; do version[$name]=$number; done \
  < <(dpkg-query -W -f='${Package} ${Version}\n')
for place in "${!origin[@]}"; do
  path=${origin[$place]}
  name=${package[$path]:-${package[${path#/usr}]:-}}
  printf '%s\t%s\t%s\t%s\n' "$place" "$(stat -c %s "$folder/$place")" \
    "${name:--}" "${version[${name:--}]:--}"
done | sort >"$contents"
sort -t$'\t' -k2 -n -r "$contents" |  # Read to its end: "head" may break the pipe.
  awk -F'\t' 'NR <= 12 {printf "stage: %7.1f MB  %s\n", $2 / 1e6, $1}'
awk -F'\t' '{bytes += $2} END {printf "stage: %7.1f MB  all %d files\n", bytes / 1e6, NR}' "$contents"

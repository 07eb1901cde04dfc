# Sourced by other scripts: sources of Debian packages.
#
# fetch WORK PACKAGE FOLDER: fetches the sources of a package and unpacks them into the folder, unless it is
# there. What apt needs, and says (fetch.log), stays in the folder WORK. Where sources come from is taken from
# this machine's own configuration of apt, which is not changed.
fetch() {
  local work=$1 package=$2 folder=$3 sources=/etc/apt/sources.list.d/debian.sources
  [ -d "$folder" ] && return 0
  [ -r "$sources" ] && command -v apt-get >/dev/null || return 1
  mkdir -p "$work/lists/partial"
  sed 's/^Types: .*/Types: deb-src/' "$sources" >"$work/src.sources"
  local options=(-qq -o "Dir::Etc::sourcelist=$work/src.sources" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$work/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20)
  if [ ! -e "$work/updated" ]; then
    timeout 120 apt-get "${options[@]}" update >"$work/fetch.log" 2>&1 || return 1
    touch "$work/updated"
  fi
  (cd "$work" && timeout 120 apt-get "${options[@]}" source --download-only "$package") \
    >"$work/fetch.log" 2>&1 || return 1
  rm -rf "$folder.new"
  mkdir "$folder.new"
  local archive
  for archive in "$work/$package"_*.orig.tar.*; do
    case $archive in *.asc) continue ;; esac
    tar xf "$archive" -C "$folder.new" --strip-components=1 || return 1
  done
  mv "$folder.new" "$folder"
}

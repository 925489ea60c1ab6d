# Installs Debian packages that are missing. To be sourced.

# need_command COMMAND PACKAGE...: installs the packages unless the command is there.
need_command() {
  command -v "$1" >/dev/null && return
  install_packages "${@:2}"
}

# need_file FILE PACKAGE...: installs the packages unless the file is there.
need_file() {
  [ -e "$1" ] && return
  install_packages "${@:2}"
}

# need_packages PACKAGE...: installs those that are missing, all at once, which takes a fraction of one by one.
need_packages() {
  local package missing=()
  for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ "${#missing[@]}" = 0 ] || install_packages "${missing[@]}"
}

# install_packages PACKAGE...: one process at a time; fetches the lists of packages only if these do not do.
install_packages() {
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  (
    flock 8
    export DEBIAN_FRONTEND=noninteractive
    install=(apt-get install -y -qq -o DPkg::Lock::Timeout=300 "$@")
    "${as_root[@]}" "${install[@]}" >/dev/null 2>&1 && exit
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" "${install[@]}" >/dev/null
  ) 8>"${TMPDIR:-/tmp}/hqueue-install.$(id -u).lock"
}

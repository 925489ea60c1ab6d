# Installs Debian packages that are missing. To be sourced.

# need_command COMMAND PACKAGE...: installs the packages unless the command is there.
need_command() {
  command -v "$1" >/dev/null && return
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq -o DPkg::Lock::Timeout=300 "${@:2}" >/dev/null
}

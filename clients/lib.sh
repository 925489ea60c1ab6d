# What the run scripts of the clients share. To be sourced with the client's folder in $here.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
idl=$root/idl/hqueue.thrift
# Everything that is made or downloaded for this client.
build=${CARGO_TARGET_DIR:-$root/target}/languages/$(basename "$here")
. "$root/scripts/lib/install.sh"

# choose [WORD]...: the words of `run` begin with a program of the folder, or with `setup`, which only prepares. With a producer, there are
# at least a broker, a queue, a topic and a value; a port of a consumer is a number, and free. Otherwise says how it is called.
choose() {
  local run subscriber=
  run=clients/$(basename "$here")/run
  [ ! -e "$here/subscriber.py" ] || subscriber="
       $run subscriber HOST:PORT QUEUE NAME [PORT]      prints what is pushed, and announces itself to the broker"
  case ${1-} in
    setup) return ;;
    consumer) ! is_port "${2-9500}" || { want_free "${2-9500}"; return 0; } ;;
    producer) [ $# -lt 5 ] || return 0 ;;
    subscriber) [ -z "$subscriber" ] || [ $# -lt 4 ] || ! is_port "${5-9500}" || { want_free "${5-9500}"; return 0; } ;;
    -h | --help) exec 2>&1 ;;
  esac
  echo "usage: $run consumer [PORT]                             prints what the broker pushes to 127.0.0.1:PORT (9500)
       $run producer HOST:PORT QUEUE TOPIC VALUE...     puts messages, prints where they went$subscriber
       $run setup                                       installs and builds what is missing, and ends" >&2
  case ${1-} in -h | --help) exit 0 ;; *) exit 2 ;; esac
}

is_port() {
  case $1 in '' | *[!0-9]*) return 1 ;; esac
}

# want_free PORT: most libraries tell of a port that is taken by a stack trace.
want_free() {
  (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || return 0
  echo "somebody listens at port $1 already, perhaps another consumer: name another port" >&2
  exit 1
}

# prepare STAMP FILE...: runs the function `make_it`, unless it succeeded before with the same files. One process at a time.
prepare() {
  local stamp=$build/$1.stamp now
  mkdir -p "$build"
  exec 9>"$build/lock"
  flock 9
  now=$(cat "${@:2}" | sha256sum)
  if [ "$now" != "$(cat "$stamp" 2>/dev/null)" ]; then
    echo "preparing $(basename "$here") in $build" >&2
    (set -e; make_it >&2 9>&-)
    echo "$now" >"$stamp"
  fi
  exec 9>&-
}

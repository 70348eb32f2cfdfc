# shellcheck shell=bash
# The actions of an S3 server that is one process: shared by seaweedfs-dev and rclone-s3-dev, after daemons.sh.
# The sourcing script sets SERVER_PROGRAM, SERVER_HINT, PORTS (names of the variables that hold its ports, PORT
# and maybe TLS_PORT among them), ONE_PORT=1 if http and https exclude each other, and defines
# server_version, server_launch and, if the server leaves things outside DATA_DIR, server_cleanup.
# shellcheck disable=SC2034,SC2153  # variables of and for the sourcing script

ACCESS_KEY=$DEV_ACCESS_KEY
SECRET_KEY=$DEV_SECRET_KEY
TLS_CERT='' TLS_KEY=''
ONE_PORT=0
BUCKETS=() GIVEN=()
server_cleanup() { :; }

find_program() { # NAME -> its path in the project's .venv, else its name
  local venv
  venv=$(dirname "$(readlink -f "$0")")/../.venv/bin/$1
  if [[ -x $venv ]]; then readlink -f "$venv"; else printf '%s' "$1"; fi
}

parse_start_options() {
  while [[ $# -gt 0 ]]; do
    case "$1" in
      --tls) [[ $# -ge 3 ]] || bad "--tls needs CERT and KEY"
             [[ -r $2 && -r $3 ]] || bad "--tls: cannot read '$2' or '$3'"
             TLS_CERT=$(readlink -f "$2") TLS_KEY=$(readlink -f "$3"); GIVEN+=("$1"); shift 3 ;;
      --bucket) { [[ $# -ge 2 ]] && is_bucket_name "$2"; } || bad "--bucket needs a name: 3 to 63 of a-z 0-9 . -"
                BUCKETS+=("$2"); shift 2 ;;
      *) bad "unknown option '$1'" ;;
    esac
  done
}

save_state() {
  local v
  for v in "${PORTS[@]}" TLS_CERT TLS_KEY ACCESS_KEY SECRET_KEY; do printf '%s=%q\n' "$v" "${!v:-}"; done >"$STATE.new"
  mv "$STATE.new" "$STATE"
}
# shellcheck disable=SC1090  # written by save_state
load_state() { [[ -s $STATE ]] || die "$DIR holds no server of $PROG (start it first)"; . "$STATE"; }

http_endpoint()  { [[ $ONE_PORT == 1 && -n $TLS_CERT ]] || printf 'http://127.0.0.1:%s' "$PORT"; }
https_endpoint() {
  [[ -n $TLS_CERT ]] || return 0
  if [[ $ONE_PORT == 1 ]]; then printf 'https://127.0.0.1:%s' "$PORT"
  else printf 'https://127.0.0.1:%s' "$TLS_PORT"; fi
}
any_endpoint() { local e; e=$(http_endpoint); printf '%s' "${e:-$(https_endpoint)}"; }

answers() { # both endpoints, where there are two; an S3 error is an answer, too
  local e
  for e in $(http_endpoint) $(https_endpoint); do
    [[ $(curl -sk --noproxy '*' -m 3 -o "$DIR/run/probe" -w '%{http_code}' --aws-sigv4 aws:amz:us-east-1:s3 \
         -H "x-amz-content-sha256: $EMPTY_SHA" -u "$ACCESS_KEY:$SECRET_KEY" "$e/") == 200 ]] || return 1
  done
}

abort_start() { # leave nothing running after a failed or interrupted start
  local rc=$?
  trap - EXIT
  trap '' INT TERM HUP
  (end server 0; server_cleanup) || true
  say "start failed; logs are in $DIR/log" >&2
  exit "$rc"
}

do_start() {
  local t b v
  need_programs "$SERVER_HINT" "$SERVER_PROGRAM" curl flock setsid
  t=$(date +%s%N)
  [[ ! -e $DIR || -f $MARK || -z $(ls -A "$DIR") ]] || die "$DIR is not empty and is not $PROG's"
  mkdir -p "$DIR"/{run,log}; : >"$MARK"
  lock
  if [[ -s $STATE ]]; then
    [[ ${#GIVEN[@]} -eq 0 ]] || die "$DIR has a server already; 'destroy' it to change ${GIVEN[*]}"
    load_state
    ! alive server || die "it already runs (pid $(pid_of server)): 'stop' first"
  else
    for v in "${PORTS[@]}"; do pick_port; printf -v "$v" %s "$PORT_OUT"; done
  fi
  trap abort_start EXIT
  trap 'exit 130' INT; trap 'exit 143' TERM; trap 'exit 129' HUP
  server_launch
  wait_for 60 server "answer from $(any_endpoint)" answers
  save_state
  for b in ${BUCKETS[@]+"${BUCKETS[@]}"}; do make_bucket "$(any_endpoint)" "$ACCESS_KEY" "$SECRET_KEY" "$b"; done
  trap - EXIT INT TERM HUP
  t=$(( ($(date +%s%N) - t) / 1000000 ))
  say "$(server_version) up in $((t / 1000)).$(printf '%03d' $((t % 1000)))s: S3 at $(http_endpoint) $(https_endpoint) (path style, region us-east-1)"
}

do_stop() { # SECONDS to wait before KILL; SeaweedFS takes some 16 to save itself
  [[ -f $MARK ]] || die "$DIR holds no server of $PROG"
  lock
  # shellcheck disable=SC1090
  [[ ! -s $STATE ]] || . "$STATE"
  end server "${1:-40}"
  [[ ! -s $STATE ]] || server_cleanup
  say "stopped"
}

do_status() {
  load_state
  if ! alive server; then echo "stopped"; exit 3; fi
  if answers; then echo "running  pid $(pid_of server)  S3 $(http_endpoint) $(https_endpoint) answers"
  else echo "running  pid $(pid_of server)  S3 does not answer"; exit 1; fi
}

do_env() {
  load_state
  print_s3_env "$(http_endpoint)" "$(https_endpoint)" "$ACCESS_KEY" "$SECRET_KEY" "$(server_version)"
}

do_destroy() {
  [[ -e $DIR ]] || { say "nothing at $DIR"; return 0; }
  [[ -f $MARK ]] || die "$DIR is not $PROG's: not removed"
  do_stop 0
  rm -rf -- "$DIR"
  say "removed"
}

main() {
  [[ $# -ge 1 ]] || { usage >&2; exit 2; }
  case "$1" in -h|--help|help) usage; exit 0 ;; start|stop|status|env|destroy) ;; *) bad "unknown action '$1'" ;; esac
  local action=$1; shift
  [[ $# -ge 1 && $1 != -* ]] || bad "$action needs DATA_DIR"
  data_dir "$1"; shift
  MARK=$DIR/.$PROG STATE=$DIR/$PROG.state
  if [[ $action == start ]]; then parse_start_options "$@"
  elif [[ $# -gt 0 ]]; then bad "$action takes no options"; fi
  "do_$action"
}

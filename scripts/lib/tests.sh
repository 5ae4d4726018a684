# Builds and runs the test programs of the workspace. To be sourced after steps.sh.

# Where a folder is new, nothing is kept for a second build: it would take most of the folder's size.
if [ -z "$(ls -A "$CARGO_TARGET_DIR/debug/incremental" 2>/dev/null)" ]; then export CARGO_INCREMENTAL=${CARGO_INCREMENTAL-0}; fi

passed=0 failed=0 skipped=0
results=$logs/tests
rm -rf "$results"
mkdir -p "$results"
cores=$(getconf _NPROCESSORS_ONLN)

# Some tests hold thousands of connections.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

# The same cases every time, so that a failure is of the change and not of the day.
readonly fixed_seed=2718281828

# use_seed SEED: for what tests draw.
use_seed() { export SPILLGATE_SEED=$1 PROPTEST_RNG_SEED=$1; }

# draw_seed: one that no run had before.
draw_seed() { od -An -N4 -tu4 /dev/urandom | tr -d ' '; }

# build_tests CARGO_ARGUMENT...: all programs at once, so that nothing is built a second time with other
# features. $results/programs lists folder and program of each.
build_tests() {
    cargo build --locked --message-format=json-render-diagnostics "$@" >"$results/built.json" || return
    sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"test":true},"features".*"executable":"\([^"]*\)".*|\1\t\2|p' \
        "$results/built.json" | sort >"$results/programs"
}

# run_tests [NAME...]: the programs that were built, or those of some crates.
run_tests() {
    local folder program crate
    while IFS=$'\t' read -r folder program; do
        crate=${folder##*/}
        if [ $# = 0 ] || [[ " $* " == *" ${crate#spillgate-} "* ]]; then
            run_program "$folder" "$program" "$(program_name "$folder" "$program")"
        fi
    done <"$results/programs"
}

# program_name FOLDER PROGRAM: such as "spillgate-redis all".
program_name() {
    local name=${2##*/}
    name=${name%-*}
    if [ "${name//_/-}" = "${1##*/}" ]; then name=unit; fi
    echo "${1##*/} $name"
}

# run_program FOLDER PROGRAM NAME [ARGUMENT...]: runs a test program and counts.
run_program() {
    local folder=$1 program=$2 name=$3 threads=$cores
    shift 3
    # They wait more than they compute.
    case $name in *" server" | *" redis") threads=$((cores + 3)) ;; esac
    # The standard test runner tells times only if it is let. Properties without a number of cases of their
    # own have proptest's.
    run_counted "$name" env -C "$folder" RUSTC_BOOTSTRAP=1 RUST_BACKTRACE=0 SPILLGATE_SEED="$SPILLGATE_SEED" \
        PROPTEST_RNG_SEED="$PROPTEST_RNG_SEED" PROPTEST_CASES=$((256 * ${SPILLGATE_EFFORT:-1})) \
        PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 "$program" \
        --test-threads "$threads" -Z unstable-options --report-time "$@"
}

# run_counted NAME COMMAND...: runs a command that prints how many tests have passed, and counts them.
run_counted() {
    local name=$1 log=$results/${1//[^a-zA-Z0-9]/-}.log begin=$SECONDS status=0
    shift
    progress_begin "$name" "$log"
    "$@" </dev/null >"$log" 2>&1 || status=$?
    progress_end
    count_results "$log" "$status"
    if [ "$ran $bad $left" = "0 0 0" ]; then return; fi
    passed=$((passed + ran)) failed=$((failed + bad)) skipped=$((skipped + left))
    local counts="$ran passed, $bad failed, $left skipped"
    if [ "$bad" = 0 ]; then line "$((SECONDS - begin))" ok "$name: $counts"; return; fi
    line "$((SECONDS - begin))" FAILED "$name: $counts"
    failed_steps+=("$name")
    { failures "$log" | grep . || tail -n 60 "$log"; } | awk 'NR <= 200 { print "        " $0 }'
    printf '        the whole output: %s\n        again: %s\n' "$log" "$*"
}

# failures LOG: what Rust's test runner tells of each, but for tests that are left out.
failures() {
    awk -v no_install="${no_install:-}" '
        function tell() { if (!no_install || text !~ /is not on this machine/) printf "%s", text; text = "" }
        /^---- .* stdout ----$/ { tell() }
        /^failures:$/ { tell(); if (begun++) exit; next }
        begun { text = text $0 "\n" }' "$1"
}

# count_results LOG STATUS: ran, bad and left, from the words of Rust's test runner and of pytest. Where
# nothing may be installed, a test that failed for want of a program is left out: spillgate_testing::program
# says these words.
count_results() {
    local line wanting found=''
    ran=0 bad=0 left=0
    while read -r line; do
        found=yes
        if [[ $line =~ ([0-9]+)\ passed ]]; then ran=$((ran + BASH_REMATCH[1])); fi
        if [[ $line =~ ([0-9]+)\ (failed|error) ]]; then bad=$((bad + BASH_REMATCH[1])); fi
        if [[ $line =~ ([0-9]+)\ skipped ]]; then left=$((left + BASH_REMATCH[1])); fi
    done < <(grep -aE '^test result: |^[0-9]+ (passed|failed).* in [0-9.]+s' "$1")
    # Those that others run in processes of their own are part of these.
    left=$((left + $(awk '/^test .* \.\.\. ignored/ && !/the other tests run it/ { n++ } END { print n + 0 }' "$1")))
    # Ended before it could tell, or in spite of what it told.
    if [ -z "$found" ] || { [ "$2" != 0 ] && [ "$bad" = 0 ]; }; then bad=1; fi
    if [ "$bad" = 0 ] || [ -z "${no_install:-}" ]; then return; fi
    wanting=$(awk '/^---- .* stdout ----$/ { test = $2 }
        test && match($0, /[^ ]+ is not on this machine; \.\/scripts\/test installs it/) {
            print substr($0, RSTART, RLENGTH - 51); test = "" }' "$1")
    if [ -z "$wanting" ]; then return; fi
    printf '%s\n' "$wanting" >>"$results/wanting"
    left=$((left + $(wc -l <<<"$wanting"))) bad=$((bad - $(wc -l <<<"$wanting")))
}

# left_out: tests that were left out, and which package brings what they need.
left_out() {
    if [ ! -e "$results/wanting" ]; then return; fi
    printf '\nleft out for want of programs:\n'
    local count program row
    sort "$results/wanting" | uniq -c | while read -r count program; do
        for row in "${debian[@]}"; do
            if [ "${row%% *}" = "${program##*/}" ]; then break; fi
            row="x $program"
        done
        read -r _ row _ <<<"$row"
        case $program in
            target/*) row="from PyPI, in $(cut -d / -f 1,2 <<<"$program")" ;;
            *) row="Debian's package $row" ;;
        esac
        printf '    %3d tests: %s (%s)\n' "$count" "$program" "$row"
    done
}

# slowest: the ten tests that took longest.
slowest() {
    printf '\nslowest tests:\n'
    sed -n 's/^test \(.*\) \.\.\. .*<\([0-9.]*\)s>$/\2 s  \1/p' "$results"/*.log | sort -rn | sed -n '1,10s/^/    /p'
}

# test_all TARGET...: builds these targets of the packages, runs their tests, and the examples of the documentation.
# All builds name the same packages, since others have other features, with which everything is built again.
packages=()
test_all() {
    must "build" build_tests --all-features "${packages[@]}" "$@"
    if [ -z "${no_install:-}" ]; then step "programs of others are installed" installed; fi
    run_tests
    run_counted "examples of the documentation" cargo test --locked --all-features "${packages[@]}" --doc
}

# finish_tests: the end of a run, with the counts on the last line.
finish_tests() {
    local status=0
    slowest
    left_out
    finish || status=1
    printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    return $status
}

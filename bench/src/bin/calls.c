// One kind of call, so many times: scripts/bench-c counts the instructions and the time of each.
// bench/calls.rs makes the same calls in Rust.
#define _POSIX_C_SOURCE 200809L
#include <spillgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KEYS = 1000 };

static char keys[KEYS][16];
static size_t lengths[KEYS];
static sg_limiter *limiter;
static uint64_t sum;

static void allow(uint64_t count) {
    for (uint64_t call = 0; call < count; call++) {
        sum += sg_allow_n(limiter, keys[call % KEYS], lengths[call % KEYS], 1);
    }
}

static void allow_string(uint64_t count) {
    for (uint64_t call = 0; call < count; call++) {
        sum += sg_allow(limiter, keys[call % KEYS]);
    }
}

static void check(uint64_t count) {
    for (uint64_t call = 0; call < count; call++) {
        sg_decision decision;
        sg_check(limiter, keys[call % KEYS], lengths[call % KEYS], 1, &decision);
        sum += decision.remaining + decision.reset_after_ns;
    }
}

static void reserve(uint64_t count) {
    for (uint64_t call = 0; call < count; call++) {
        sg_reservation *reservation;
        sg_reserve(limiter, keys[call % KEYS], lengths[call % KEYS], 3, NULL, &reservation);
        sg_reservation_settle(&reservation, 2, NULL, NULL);
    }
}

static const struct {
    const char *name, *quota;
    void (*run)(uint64_t);
} ROWS[] = {
    {"allowed", "1000000/s burst 100000000", allow},
    {"allowed, key ends with NUL", "1000000/s burst 100000000", allow_string},
    {"denied", "1/h", allow},
    {"check, whole decision", "1000000/s burst 100000000", check},
    {"check, whole decision, denied", "1/h", check},
    {"reserve and settle", "1000000/s burst 100000000", reserve},
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

// calls: the names of rows; calls ROW COUNT: runs one, and prints nanoseconds per call.
int main(int argc, char **argv) {
    const size_t rows = sizeof ROWS / sizeof *ROWS;
    for (int key = 0; key < KEYS; key++) {
        lengths[key] = (size_t)snprintf(keys[key], sizeof *keys, "203.0.113.%d", key);
    }
    for (size_t row = 0; row < rows; row++) {
        if (argc < 3) {
            puts(ROWS[row].name);
            continue;
        }
        if (strcmp(ROWS[row].name, argv[1]) != 0) {
            continue;
        }
        uint64_t count = strtoull(argv[2], NULL, 10);
        if (sg_limiter_new(&(sg_config){.quota = ROWS[row].quota}, &limiter) != SG_OK) {
            fprintf(stderr, "%s\n", sg_last_error());
            return 1;
        }
        allow(KEYS);
        double begin = now();
        ROWS[row].run(count);
        printf("%.2f\n", (now() - begin) / (double)count);
        sg_limiter_free(&limiter);
        // Used, so that no call is left out.
        return sum == 1;
    }
    return argc < 3 ? 0 : 2;
}

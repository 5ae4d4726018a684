// What the test programs have in common.
#ifndef CHECK_H
#define CHECK_H

#define _POSIX_C_SOURCE 200809L
#include <spillgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Names the place and what does not hold.
#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition,  \
                    sg_last_error());                                                         \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

#define OK(call) CHECK((call) == SG_OK)

// A call that fails with this status, and an error text that contains this part.
#define FAILS(call, status, part)                          \
    do {                                                   \
        CHECK((call) == (status));                         \
        CHECK(strstr(sg_last_error(), (part)) != NULL);    \
    } while (0)

#define SECOND 1000000000ull
#define START (1700000000ull * SECOND)

struct test {
    const char *name;
    void (*run)(void);
};

// A test is named as the function that it is.
#define TEST(function) {#function, function}

static inline int run_tests(const struct test *tests, size_t count) {
    for (size_t test = 0; test < count; test++) {
        tests[test].run();
        printf("  ok: %s\n", tests[test].name);
    }
    return 0;
}

#define RUN(tests) run_tests((tests), sizeof(tests) / sizeof *(tests))

// A limiter on a clock of its own, made from a configuration whose clock is set here.
static inline sg_limiter *made(sg_config config, sg_clock **clock) {
    sg_limiter *limiter = NULL;
    OK(sg_clock_new(START, clock));
    config.clock = *clock;
    OK(sg_limiter_new(&config, &limiter));
    CHECK(limiter != NULL);
    return limiter;
}

static inline void freed(sg_limiter *limiter, sg_clock *clock) {
    OK(sg_limiter_free(&limiter));
    OK(sg_clock_free(&clock));
    CHECK(limiter == NULL && clock == NULL);
}

// How many of so many calls are allowed.
static inline int allowed_of(int calls, sg_limiter *limiter, const char *key) {
    int allowed = 0;
    while (calls-- > 0) {
        allowed += sg_allow(limiter, key);
    }
    return allowed;
}

#endif

// Many threads on one limiter.
#include "check.h"

#include <pthread.h>

enum { CROWD = 200, BURST = 100, WORKERS = 16 };

static sg_limiter *limiter;
static sg_clock *clock_of_all;
static pthread_barrier_t start;

static void each(int count, void *(*run)(void *), void **results) {
    pthread_t threads[CROWD];
    for (long thread = 0; thread < count; thread++) {
        CHECK(pthread_create(&threads[thread], NULL, run, (void *)thread) == 0);
    }
    for (int thread = 0; thread < count; thread++) {
        CHECK(pthread_join(threads[thread], &results[thread]) == 0);
    }
}

static void *ask_once(void *thread) {
    (void)thread;
    pthread_barrier_wait(&start);
    return (void *)(size_t)sg_allow(limiter, "everybody");
}

static void two_hundred_threads_against_a_burst_of_100_admit_100(void) {
    for (int round = 0; round < 5; round++) {
        void *results[CROWD];
        size_t allowed = 0;
        sg_counts counts;
        limiter = made((sg_config){.burst = BURST, .refill = 1, .window_ns = 3600 * SECOND}, &clock_of_all);
        CHECK(pthread_barrier_init(&start, NULL, CROWD) == 0);
        each(CROWD, ask_once, results);
        pthread_barrier_destroy(&start);
        for (int thread = 0; thread < CROWD; thread++) {
            allowed += (size_t)results[thread];
        }
        CHECK(allowed == BURST);
        OK(sg_limiter_counts(limiter, &counts));
        CHECK(counts.allowed == BURST && counts.denied == CROWD - BURST);
        freed(limiter, clock_of_all);
    }
}

// Calls everything there is, on callers of its own and on shared ones.
static void *work(void *thread) {
    size_t allowed = 0;
    char key[32], text[64];
    sg_decision d, many[3];
    sg_reservation *reservation;
    const char *keys[] = {"shared", key, NULL};
    for (int round = 0; round < 400; round++) {
        snprintf(key, sizeof key, "%ld of round %d", (long)(size_t)thread, round % 50);
        allowed += sg_allow(limiter, "counted");
        sg_allow(limiter, key);
        OK(sg_check(limiter, key, SG_CSTR, 3, &d));
        OK(sg_check_many(limiter, keys, NULL, 3, many));
        OK(sg_debit(limiter, "shared", SG_CSTR, 1, NULL, NULL));
        OK(sg_refund(limiter, "shared", SG_CSTR, 1));
        OK(sg_reserve(limiter, key, SG_CSTR, 2, &d, &reservation));
        if (reservation != NULL) {
            OK(sg_reservation_settle(&reservation, 1, &d, NULL));
        }
        if (round % 8 == 0) {
            OK(sg_set_override(limiter, key, SG_CSTR, "50/s", round % 16 == 0 ? 0 : SECOND));
            OK(sg_quota_of(limiter, key, SG_CSTR, text, sizeof text));
            OK(sg_remove_override(limiter, key, SG_CSTR, NULL));
            OK(sg_reset(limiter, key, SG_CSTR));
            CHECK(sg_check(limiter, NULL, 1, 1, &d) == SG_ERROR_ARGUMENT);
            CHECK(strstr(sg_last_error(), "its length is 1") != NULL);
        }
        if (round % 100 == 0) {
            // A limiter of its own, while others make and free theirs.
            sg_limiter *own = NULL;
            OK(sg_limiter_new(&(sg_config){.max_callers = 10}, &own));
            CHECK(sg_allow(own, key));
            OK(sg_limiter_free(&own));
            OK(sg_limiter_purge_idle(limiter, NULL));
        }
    }
    return (void *)allowed;
}

static void sixteen_threads_call_everything_and_one_caller_is_counted_exactly(void) {
    void *results[CROWD];
    size_t allowed = 0, callers = 0;
    limiter = made((sg_config){.quota = "1000/h", .max_callers = 5000, .when_full = "protect"}, &clock_of_all);
    each(WORKERS, work, results);
    for (int thread = 0; thread < WORKERS; thread++) {
        allowed += (size_t)results[thread];
    }
    // Nobody else spends on it, and the clock stands still.
    CHECK(allowed == 1000);
    OK(sg_limiter_active_callers(limiter, &callers));
    CHECK(callers > 0);
    freed(limiter, clock_of_all);
}

static void *fail_alone(void *thread) {
    char part[32];
    CHECK(strcmp(sg_last_error(), "") == 0);
    pthread_barrier_wait(&start);
    size_t length = 1000 + (size_t)thread;
    sg_decision d;
    CHECK(sg_check(limiter, NULL, length, 1, &d) == SG_ERROR_ARGUMENT);
    pthread_barrier_wait(&start);
    snprintf(part, sizeof part, "its length is %zu;", length);
    CHECK(strstr(sg_last_error(), part) != NULL);
    return NULL;
}

static void every_thread_has_its_own_last_error(void) {
    void *results[CROWD];
    limiter = made((sg_config){0}, &clock_of_all);
    CHECK(pthread_barrier_init(&start, NULL, WORKERS) == 0);
    each(WORKERS, fail_alone, results);
    pthread_barrier_destroy(&start);
    freed(limiter, clock_of_all);
}

static sg_limiter *contended;

static void *free_it(void *thread) {
    (void)thread;
    sg_limiter *mine = contended;
    pthread_barrier_wait(&start);
    return (void *)(size_t)(sg_limiter_free(&mine) == SG_OK);
}

static void of_many_threads_that_free_a_limiter_one_does(void) {
    for (int round = 0; round < 20; round++) {
        void *results[CROWD];
        size_t freed = 0;
        OK(sg_limiter_new(NULL, &contended));
        CHECK(pthread_barrier_init(&start, NULL, WORKERS) == 0);
        each(WORKERS, free_it, results);
        pthread_barrier_destroy(&start);
        for (int thread = 0; thread < WORKERS; thread++) {
            freed += (size_t)results[thread];
        }
        CHECK(freed == 1);
    }
}

// Runs when a thread exits, after what the library has of that thread may be gone.
static void call_while_exiting(void *key) {
    sg_decision d;
    CHECK(sg_allow(limiter, "exiting"));
    CHECK(sg_check(limiter, NULL, 1, 1, &d) == SG_ERROR_ARGUMENT);
    CHECK(sg_last_error() != NULL);
    CHECK(pthread_setspecific(*(pthread_key_t *)key, NULL) == 0);
}

static pthread_key_t exiting;

static void *exit_with_a_call(void *thread) {
    (void)thread;
    CHECK(sg_allow(limiter, "exiting") && !sg_allow_n(limiter, NULL, 1, 1));
    CHECK(pthread_setspecific(exiting, &exiting) == 0);
    return NULL;
}

static void calls_while_a_thread_exits_are_counted(void) {
    void *results[CROWD];
    sg_counts counts;
    limiter = made((sg_config){.quota = "1000/h"}, &clock_of_all);
    CHECK(pthread_key_create(&exiting, call_while_exiting) == 0);
    each(WORKERS, exit_with_a_call, results);
    CHECK(pthread_key_delete(exiting) == 0);
    OK(sg_limiter_counts(limiter, &counts));
    CHECK(counts.allowed == 2 * WORKERS);
    freed(limiter, clock_of_all);
}

int main(void) {
    const struct test tests[] = {
        TEST(two_hundred_threads_against_a_burst_of_100_admit_100),
        TEST(sixteen_threads_call_everything_and_one_caller_is_counted_exactly),
        TEST(every_thread_has_its_own_last_error),
        TEST(of_many_threads_that_free_a_limiter_one_does),
        TEST(calls_while_a_thread_exits_are_counted),
    };
    return RUN(tests);
}

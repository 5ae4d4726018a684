// fork while other threads are in the middle of calls.
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 6, FORKS = 150 };

static sg_limiter *limiter;
static atomic_bool done;

// Calls that take locks: first calls of callers, overrides, reservations, changes of quota, limiters.
static void call_everything(const char *who, int round) {
    char key[64];
    snprintf(key, sizeof key, "%s %d", who, round);
    sg_reservation *reservation;
    sg_allow(limiter, key);
    OK(sg_set_override(limiter, key, SG_CSTR, "5/s", 0));
    sg_allow(limiter, key);
    OK(sg_remove_override(limiter, key, SG_CSTR, NULL));
    OK(sg_reserve(limiter, who, SG_CSTR, 1, NULL, &reservation));
    OK(sg_reservation_free(&reservation));
    OK(sg_limiter_set_quota(limiter, round % 2 ? "1000000/s" : "999999/s"));
    sg_limiter *own = NULL;
    OK(sg_limiter_new(&(sg_config){.max_callers = 1}, &own));
    CHECK(sg_allow(own, key));
    OK(sg_limiter_free(&own));
}

static void *work(void *thread) {
    char who[32];
    snprintf(who, sizeof who, "thread %ld", (long)(size_t)thread);
    for (int round = 0; !atomic_load(&done); round++) {
        call_everything(who, round);
    }
    return NULL;
}

// Runs in the child, and waits for it in the parent.
static void in_child(void (*run)(int), int argument) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        // A lock that nobody releases would stop it for ever.
        alarm(60);
        run(argument);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void calls_of_child(int number) {
    char who[32];
    snprintf(who, sizeof who, "child %d", number);
    for (int round = 0; round < 20; round++) {
        call_everything(who, round);
    }
}

static void a_child_can_call_everything_whatever_other_threads_do(void) {
    pthread_t threads[WORKERS];
    OK(sg_limiter_new(&(sg_config){.quota = "1000000/s", .max_callers = 500}, &limiter));
    for (long thread = 0; thread < WORKERS; thread++) {
        CHECK(pthread_create(&threads[thread], NULL, work, (void *)thread) == 0);
    }
    for (int number = 0; number < FORKS; number++) {
        in_child(calls_of_child, number);
    }
    atomic_store(&done, true);
    for (int thread = 0; thread < WORKERS; thread++) {
        CHECK(pthread_join(threads[thread], NULL) == 0);
    }
    OK(sg_limiter_free(&limiter));
}

static void spend_the_rest(int rest) {
    CHECK(allowed_of(20, limiter, "alice") == rest);
}

static void a_child_has_a_copy_of_what_was_spent(void) {
    sg_clock *clock;
    limiter = made((sg_config){.quota = "10/h"}, &clock);
    CHECK(allowed_of(4, limiter, "alice") == 4);
    in_child(spend_the_rest, 6);
    // What the child has spent is not spent here.
    spend_the_rest(6);
    freed(limiter, clock);
}

static pid_t forked;

// In the middle of a check.
static const char *fork_once(const char *key, size_t length, void *context) {
    (void)key, (void)length, (void)context;
    if (forked == 0) {
        forked = fork();
        CHECK(forked >= 0);
        forked = forked == 0 ? -1 : forked;
    }
    return NULL;
}

static void both_processes_finish_a_call_in_which_one_forked(void) {
    sg_clock *clock;
    limiter = made((sg_config){.quota = "2/h", .tier_of = fork_once}, &clock);
    CHECK(sg_allow(limiter, "alice"));
    CHECK(allowed_of(5, limiter, "alice") == 1);
    if (forked < 0) {
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(forked, &status, 0) == forked);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    freed(limiter, clock);
}

int main(void) {
    const struct test tests[] = {
        TEST(a_child_can_call_everything_whatever_other_threads_do),
        TEST(a_child_has_a_copy_of_what_was_spent),
        TEST(both_processes_finish_a_call_in_which_one_forked),
    };
    return RUN(tests);
}

// Mistakes are errors with a text, never a crash.
#include "check.h"

static sg_limiter *limiter_of(const char *quota) {
    sg_limiter *limiter = NULL;
    OK(sg_limiter_new(&(sg_config){.quota = quota}, &limiter));
    return limiter;
}

static void null_limiters(void) {
    sg_decision d;
    sg_counts counts;
    sg_reservation *reservation;
    size_t size;
    char text[64];
    CHECK(!sg_allow(NULL, "alice"));
    CHECK(strcmp(sg_last_error(), "limiter is NULL") == 0);
    CHECK(!sg_allow_n(NULL, "alice", 5, 1));
    FAILS(sg_check(NULL, "alice", 5, 1, &d), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_peek(NULL, "alice", 5, 1, &d), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_debit(NULL, "alice", 5, 1, &d, NULL), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_refund(NULL, "alice", 5, 1), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_reset(NULL, "alice", 5), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_check_many(NULL, NULL, NULL, 0, NULL), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_reserve(NULL, "alice", 5, 1, &d, &reservation), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_set_override(NULL, "alice", 5, "1/s", 0), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_remove_override(NULL, "alice", 5, NULL), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_quota_of(NULL, "alice", 5, text, 64), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_limiter_set_quota(NULL, "1/s"), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_limiter_set_tier_quota(NULL, "a", "1/s"), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_limiter_counts(NULL, &counts), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_limiter_active_callers(NULL, &size), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_limiter_purge_idle(NULL, &size), SG_ERROR_ARGUMENT, "limiter is NULL");
}

static void null_places(void) {
    sg_limiter *limiter = limiter_of("2/min");
    const char *keys[] = {"alice"};
    sg_decision d;
    FAILS(sg_limiter_new(NULL, NULL), SG_ERROR_ARGUMENT, "limiter is NULL");
    FAILS(sg_clock_new(0, NULL), SG_ERROR_ARGUMENT, "clock is NULL");
    FAILS(sg_check(limiter, "alice", 5, 1, NULL), SG_ERROR_ARGUMENT, "decision is NULL");
    FAILS(sg_peek(limiter, "alice", 5, 1, NULL), SG_ERROR_ARGUMENT, "decision is NULL");
    FAILS(sg_check_many(limiter, NULL, NULL, 1, &d), SG_ERROR_ARGUMENT, "keys is NULL");
    FAILS(sg_check_many(limiter, keys, NULL, 1, NULL), SG_ERROR_ARGUMENT, "decisions is NULL");
    FAILS(sg_reserve(limiter, "alice", 5, 1, &d, NULL), SG_ERROR_ARGUMENT, "reservation is NULL");
    FAILS(sg_reservation_settle(NULL, 1, NULL, NULL), SG_ERROR_ARGUMENT, "reservation is NULL");
    FAILS(sg_reservation_cancel(NULL, NULL), SG_ERROR_ARGUMENT, "reservation is NULL");
    FAILS(sg_quota_of(limiter, "alice", 5, NULL, 64), SG_ERROR_ARGUMENT, "buffer is NULL");
    FAILS(sg_limiter_counts(limiter, NULL), SG_ERROR_ARGUMENT, "counts is NULL");
    FAILS(sg_limiter_active_callers(limiter, NULL), SG_ERROR_ARGUMENT, "callers is NULL");
    FAILS(sg_set_override(limiter, "alice", 5, NULL, 0), SG_ERROR_ARGUMENT, "quota is NULL");
    FAILS(sg_limiter_set_quota(limiter, NULL), SG_ERROR_ARGUMENT, "quota is NULL");
    FAILS(sg_limiter_set_tier_quota(limiter, NULL, "1/s"), SG_ERROR_ARGUMENT, "tier is NULL");
    FAILS(sg_clock_advance(NULL, 1), SG_ERROR_ARGUMENT, "clock is NULL");
    FAILS(sg_clock_set(NULL, 1), SG_ERROR_ARGUMENT, "clock is NULL");
    FAILS(sg_clock_now(NULL, NULL), SG_ERROR_ARGUMENT, "clock is NULL");
    CHECK(sg_retry_after_seconds(NULL) == UINT64_MAX);
    // None of them has spent anything.
    CHECK(allowed_of(3, limiter, "alice") == 2);
    OK(sg_limiter_free(&limiter));
}

static void wrong_lengths(void) {
    sg_limiter *limiter = limiter_of("2/min");
    sg_decision d[2];
    const char *keys[] = {"alice", NULL};
    const size_t lengths[] = {5, 7};
    char *long_key = calloc(1, SG_MAX_KEY + 2), text[4] = "???";
    CHECK(long_key != NULL);
    FAILS(sg_check(limiter, NULL, 5, 1, d), SG_ERROR_ARGUMENT, "key is NULL, but its length is 5");
    FAILS(sg_check(limiter, long_key, SG_MAX_KEY + 1, 1, d), SG_ERROR_ARGUMENT, "key of 1048577 bytes");
    // What a signed length of -2 becomes.
    FAILS(sg_check(limiter, "alice", (size_t)-2, 1, d), SG_ERROR_ARGUMENT, "key of 18446744073709551614");
    OK(sg_check(limiter, long_key, SG_MAX_KEY, 1, d));
    memset(long_key, 'k', SG_MAX_KEY + 1);
    FAILS(sg_check(limiter, long_key, SG_CSTR, 1, d), SG_ERROR_ARGUMENT, "key of 1048577 bytes");
    CHECK(!sg_allow(limiter, long_key));
    long_key[SG_MAX_KEY] = 0;
    OK(sg_check(limiter, long_key, SG_CSTR, 1, d));
    FAILS(sg_check_many(limiter, keys, lengths, 2, d), SG_ERROR_ARGUMENT, "its length is 7");
    FAILS(sg_check_many(limiter, keys, lengths, SIZE_MAX, d), SG_ERROR_ARGUMENT, "batch of");
    CHECK(!sg_allow_n(limiter, NULL, 3, 1));
    FAILS(sg_quota_of(limiter, "alice", 5, text, 4), SG_ERROR_ARGUMENT, "use at least 6");
    FAILS(sg_quota_of(limiter, "alice", 5, text, 0), SG_ERROR_ARGUMENT, "use at least 6");
    CHECK(strcmp(text, "???") == 0);
    CHECK(allowed_of(3, limiter, "alice") == 2);
    free(long_key);
    OK(sg_limiter_free(&limiter));
}

static void wrong_configurations(void) {
    static const sg_tier nameless = {NULL, "1/s"}, gold = {"gold", "1/s"};
    sg_limiter *limiter = (sg_limiter *)&limiter;
    const struct {
        sg_config config;
        sg_status status;
        const char *part;
    } rows[] = {
        {{.quota = "10/fortnight"}, SG_ERROR_QUOTA, "unknown unit \"fortnight\""},
        {{.quota = ""}, SG_ERROR_QUOTA, "an amount"},
        {{.quota = "0/s"}, SG_ERROR_QUOTA, "would admit nothing"},
        {{.quota = "1/s", .burst = 3}, SG_ERROR_QUOTA, "text or numbers"},
        {{.burst = 3}, SG_ERROR_QUOTA, "without a refill"},
        {{.window_ns = 3}, SG_ERROR_QUOTA, "without a refill"},
        {{.refill = UINT64_MAX}, SG_ERROR_QUOTA, "more than one a nanosecond"},
        {{.refill = 1, .window_ns = UINT64_MAX}, SG_ERROR_QUOTA, "too long"},
        {{.quota = "10/\xff"}, SG_ERROR_ENCODING, "quota \"10/\\xff\" is not UTF-8 from byte 3"},
        {{.algorithm = "\xc3("}, SG_ERROR_ENCODING, "algorithm"},
        {{.algorithm = "magic"}, SG_ERROR_ALGORITHM, "use one of token-bucket"},
        {{.quota = "burst 3", .algorithm = "fixed-window"}, SG_ERROR_ALGORITHM, ""},
        {{.when_full = "wait"}, SG_ERROR_ARGUMENT, "use one of evict, protect, deny"},
        {{.start = "half"}, SG_ERROR_ARGUMENT, "use one of full, empty"},
        {{.max_callers = SIZE_MAX}, SG_ERROR_CAPACITY, ""},
        {{.tier_count = 1}, SG_ERROR_ARGUMENT, "tiers is NULL"},
        {{.tiers = &gold, .tier_count = SIZE_MAX}, SG_ERROR_ARGUMENT, "use at most 1024"},
        {{.tiers = &nameless, .tier_count = 1}, SG_ERROR_ARGUMENT, "name of a tier is NULL"},
        {{.tiers = &gold, .tier_count = 1}, SG_ERROR_TIER, "gold"},
        {{.reserved = {0, 0, 0, 7}}, SG_ERROR_ARGUMENT, "initialise it with {0}"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        sg_status status = sg_limiter_new(&rows[row].config, &limiter);
        if (status != rows[row].status || strstr(sg_last_error(), rows[row].part) == NULL || limiter) {
            fprintf(stderr, "row %zu: %d, %s\n", row, status, sg_last_error());
            exit(1);
        }
    }
    limiter = limiter_of("1/s");
    FAILS(sg_limiter_set_quota(limiter, "a lot"), SG_ERROR_QUOTA, "");
    FAILS(sg_limiter_set_quota(limiter, "\xff"), SG_ERROR_ENCODING, "quota");
    FAILS(sg_limiter_set_tier_quota(limiter, "gold", "1/s"), SG_ERROR_TIER, "this limiter has none");
    FAILS(sg_set_override(limiter, "alice", 5, "1 per century", 0), SG_ERROR_QUOTA, "century");
    OK(sg_set_override(limiter, "alice", 5, "1/s", UINT64_MAX));
    OK(sg_limiter_free(&limiter));
}

static const char *unknown_tier(const char *key, size_t length, void *context) {
    (void)key, (void)length;
    return context;
}

static void a_tier_that_is_unknown_or_no_text_is_the_limiters_own(void) {
    char *names[] = {"silver", "", "\xff\xfe"};
    const sg_tier tiers[] = {{"gold", "9/min"}};
    for (int name = 0; name < 3; name++) {
        sg_limiter *limiter = NULL;
        OK(sg_limiter_new(&(sg_config){.quota = "2/min", .tiers = tiers, .tier_count = 1,
                                       .tier_of = unknown_tier, .tier_context = names[name]}, &limiter));
        CHECK(allowed_of(5, limiter, "alice") == 2);
        OK(sg_limiter_free(&limiter));
    }
}

static void handles_that_were_freed(void) {
    sg_limiter *limiter = limiter_of("1/s"), *copy = limiter;
    sg_decision d;
    OK(sg_limiter_free(&limiter));
    CHECK(!sg_allow(copy, "alice"));
    FAILS(sg_check(copy, "alice", 5, 1, &d), SG_ERROR_HANDLE, "limiter has been freed");
    FAILS(sg_limiter_set_quota(copy, "2/s"), SG_ERROR_HANDLE, "limiter has been freed");
    sg_limiter *again = copy;
    FAILS(sg_limiter_free(&again), SG_ERROR_HANDLE, "limiter has been freed");
    CHECK(again == NULL);
    // It stays recognised while others come and go.
    for (int other = 0; other < 60; other++) {
        limiter = limiter_of("1/s");
        CHECK(limiter != copy && sg_allow(limiter, "alice") && !sg_allow(copy, "alice"));
        OK(sg_limiter_free(&limiter));
    }

    sg_clock *clock = NULL, *stale;
    OK(sg_clock_new(START, &clock));
    stale = clock;
    OK(sg_clock_free(&clock));
    FAILS(sg_clock_advance(stale, 1), SG_ERROR_HANDLE, "clock has been freed");
    FAILS(sg_limiter_new(&(sg_config){.clock = stale}, &limiter), SG_ERROR_HANDLE, "clock");
    CHECK(limiter == NULL);

    sg_reservation *reservation, *settled;
    limiter = limiter_of("9/min");
    OK(sg_reserve(limiter, "alice", 5, 2, NULL, &reservation));
    settled = reservation;
    OK(sg_reservation_settle(&reservation, 2, NULL, NULL));
    FAILS(sg_reservation_settle(&reservation, 2, NULL, NULL), SG_ERROR_ARGUMENT, "reservation is NULL");
    FAILS(sg_reservation_settle(&settled, 2, NULL, NULL), SG_ERROR_HANDLE, "reservation has been freed");
    OK(sg_limiter_free(&limiter));
}

static void handles_of_another_kind(void) {
    sg_limiter *limiter = limiter_of("1/s");
    sg_clock *clock = NULL, *wrong = (sg_clock *)(void *)limiter;
    OK(sg_clock_new(START, &clock));
    CHECK(!sg_allow((sg_limiter *)(void *)clock, "alice"));
    FAILS(sg_clock_advance(wrong, 1), SG_ERROR_HANDLE, "of another kind");
    FAILS(sg_clock_free(&wrong), SG_ERROR_HANDLE, "of another kind");
    // Reservations are larger than the others.
    sg_reservation *larger = (sg_reservation *)(void *)clock;
    FAILS(sg_reservation_settle(&larger, 1, NULL, NULL), SG_ERROR_HANDLE, "of another kind");
    OK(sg_reserve(limiter, "bob", 3, 1, NULL, &larger));
    CHECK(!sg_allow((sg_limiter *)(void *)larger, "alice"));
    OK(sg_reservation_free(&larger));
    CHECK(sg_allow(limiter, "alice"));
    freed(limiter, clock);
}

static void extreme_numbers(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "5/s"}, &clock);
    sg_decision d;
    uint64_t uncharged = 0;
    OK(sg_check(limiter, "alice", 5, UINT64_MAX, &d));
    CHECK(d.verdict == SG_NEVER);
    OK(sg_debit(limiter, "alice", 5, UINT64_MAX, &d, &uncharged));
    CHECK(uncharged > 0);
    OK(sg_refund(limiter, "alice", 5, UINT64_MAX));
    OK(sg_clock_set(clock, UINT64_MAX));
    OK(sg_clock_advance(clock, UINT64_MAX));
    OK(sg_check(limiter, "alice", 5, 1, &d));
    OK(sg_clock_set(clock, 0));
    OK(sg_check(limiter, "alice", 5, 1, &d));
    freed(limiter, clock);
}

int main(void) {
    const struct test tests[] = {
        TEST(null_limiters),
        TEST(null_places),
        TEST(wrong_lengths),
        TEST(wrong_configurations),
        TEST(a_tier_that_is_unknown_or_no_text_is_the_limiters_own),
        TEST(handles_that_were_freed),
        TEST(handles_of_another_kind),
        TEST(extreme_numbers),
    };
    return RUN(tests);
}

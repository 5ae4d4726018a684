// What programs in C expect of a rate limiter.
#include "check.h"

static void without_a_configuration_there_are_defaults(void) {
    sg_limiter *limiter = NULL;
    char quota[SG_QUOTA_SIZE];
    OK(sg_limiter_new(NULL, &limiter));
    OK(sg_quota_of(limiter, "alice", SG_CSTR, quota, sizeof quota));
    CHECK(strcmp(quota, SG_DEFAULT_QUOTA) == 0);
    CHECK(sg_allow(limiter, "alice"));
    OK(sg_limiter_free(&limiter));

    // An empty one is the same.
    OK(sg_limiter_new(&(sg_config){0}, &limiter));
    OK(sg_quota_of(limiter, NULL, 0, quota, sizeof quota));
    CHECK(strcmp(quota, SG_DEFAULT_QUOTA) == 0);
    OK(sg_limiter_free(&limiter));
}

static void a_bucket_has_capacity_refill_and_window(void) {
    sg_clock *clock;
    sg_limiter *limiter =
        made((sg_config){.burst = 3, .refill = 1, .window_ns = 2 * SECOND}, &clock);
    CHECK(allowed_of(5, limiter, "alice") == 3);
    OK(sg_clock_advance(clock, 2 * SECOND - 1));
    CHECK(!sg_allow(limiter, "alice"));
    OK(sg_clock_advance(clock, 1));
    CHECK(allowed_of(5, limiter, "alice") == 1);
    OK(sg_clock_advance(clock, 60 * SECOND));
    CHECK(allowed_of(5, limiter, "alice") == 3);
    freed(limiter, clock);

    // By default per second, and the burst is what refills.
    limiter = made((sg_config){.refill = 4}, &clock);
    CHECK(allowed_of(9, limiter, "alice") == 4);
    OK(sg_clock_advance(clock, SECOND));
    CHECK(allowed_of(9, limiter, "alice") == 4);
    freed(limiter, clock);
}

static void callers_have_their_own_allowance(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "2/min"}, &clock);
    CHECK(allowed_of(3, limiter, "alice") == 2);
    CHECK(allowed_of(3, limiter, "bob") == 2);
    freed(limiter, clock);
}

static void callers_without_a_key_are_anonymous_and_share_one(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "4/min"}, &clock);
    CHECK(sg_allow(limiter, NULL));
    CHECK(sg_allow(limiter, ""));
    CHECK(sg_allow(limiter, "anonymous"));
    CHECK(sg_allow_n(limiter, "ignored", 0, 1));
    CHECK(!sg_allow(limiter, NULL));
    CHECK(!sg_allow_n(limiter, NULL, SG_CSTR, 1));
    freed(limiter, clock);
}

static void keys_are_bytes(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "1/min"}, &clock);
    CHECK(sg_allow_n(limiter, "\0\xff\0", 3, 1));
    CHECK(!sg_allow_n(limiter, "\0\xff\0", 3, 1));
    CHECK(sg_allow_n(limiter, "\0\xff", 2, 1));
    // A length stops before a NUL, and SG_CSTR at it.
    CHECK(sg_allow_n(limiter, "alice and more", 5, 1));
    CHECK(!sg_allow(limiter, "alice"));
    CHECK(!sg_allow_n(limiter, "alice\0more", SG_CSTR, 1));
    freed(limiter, clock);
}

static void a_decision_says_everything(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "1/s burst 5"}, &clock);
    sg_decision d;
    OK(sg_check(limiter, "alice", SG_CSTR, 2, &d));
    CHECK(d.verdict == SG_ALLOWED && !d.table_full && d.limit == 5 && d.remaining == 3);
    CHECK(d.retry_after_ns == 0 && d.reset_after_ns == 2 * SECOND && d.idle_after_ns == 2 * SECOND);
    CHECK(d.wait_ns == 0 && d.window_ns == 5 * SECOND);
    OK(sg_check(limiter, "alice", SG_CSTR, 4, &d));
    CHECK(d.verdict == SG_DENIED && d.remaining == 3 && d.retry_after_ns == SECOND);
    OK(sg_clock_advance(clock, SECOND / 2));
    OK(sg_check(limiter, "alice", SG_CSTR, 4, &d));
    CHECK(d.retry_after_ns == SECOND / 2 && sg_retry_after_seconds(&d) == 1);
    OK(sg_check(limiter, "alice", SG_CSTR, 6, &d));
    CHECK(d.verdict == SG_NEVER && d.retry_after_ns == SG_NEVER_NS);
    CHECK(sg_retry_after_seconds(&d) == UINT64_MAX);
    OK(sg_check(limiter, "alice", SG_CSTR, 0, &d));
    CHECK(d.verdict == SG_ALLOWED);
    freed(limiter, clock);

    limiter = made((sg_config){.quota = "burst 1"}, &clock);
    CHECK(sg_allow(limiter, "alice"));
    OK(sg_check(limiter, "alice", SG_CSTR, 1, &d));
    CHECK(d.verdict == SG_NEVER && d.reset_after_ns == SG_NEVER_NS && d.window_ns == SG_NEVER_NS);
    freed(limiter, clock);
}

static void a_peek_spends_nothing_and_a_debit_always(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "1/s burst 5", .max_debt = 3}, &clock);
    sg_decision d;
    uint64_t uncharged = 99;
    OK(sg_peek(limiter, "alice", SG_CSTR, 5, &d));
    CHECK(d.verdict == SG_ALLOWED && d.remaining == 5);
    OK(sg_debit(limiter, "alice", SG_CSTR, 7, &d, &uncharged));
    CHECK(d.remaining == 0 && uncharged == 0);
    // 7 - 5 = 2 of 3 owed already.
    OK(sg_debit(limiter, "alice", SG_CSTR, 4, NULL, &uncharged));
    CHECK(uncharged == 3);
    OK(sg_refund(limiter, "alice", SG_CSTR, 4));
    OK(sg_peek(limiter, "alice", SG_CSTR, 0, &d));
    CHECK(d.remaining == 1);
    OK(sg_reset(limiter, "alice", SG_CSTR));
    OK(sg_peek(limiter, "alice", SG_CSTR, 0, &d));
    CHECK(d.remaining == 5);
    freed(limiter, clock);

    limiter = made((sg_config){.quota = "1/s burst 5", .max_debt = SG_NO_DEBT}, &clock);
    OK(sg_debit(limiter, "alice", SG_CSTR, 7, NULL, &uncharged));
    CHECK(uncharged == 2);
    freed(limiter, clock);
}

static void reservations_are_settled_or_cancelled(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "1000/min"}, &clock);
    sg_reservation *reservation, *denied;
    sg_decision d;
    bool undone = false;
    OK(sg_reserve(limiter, "alice", SG_CSTR, 300, &d, &reservation));
    CHECK(reservation != NULL && d.verdict == SG_ALLOWED && d.remaining == 700);
    OK(sg_reserve(limiter, "alice", SG_CSTR, 900, &d, &denied));
    CHECK(denied == NULL && d.verdict == SG_DENIED);
    OK(sg_reservation_settle(&reservation, 450, &d, NULL));
    CHECK(reservation == NULL && d.remaining == 550);

    OK(sg_reserve(limiter, "alice", SG_CSTR, 50, NULL, &reservation));
    OK(sg_reservation_settle(&reservation, 0, &d, NULL));
    CHECK(d.remaining == 550);
    OK(sg_reserve(limiter, "alice", SG_CSTR, 50, NULL, &reservation));
    OK(sg_reservation_cancel(&reservation, &undone));
    CHECK(undone && reservation == NULL);
    OK(sg_peek(limiter, "alice", SG_CSTR, 0, &d));
    CHECK(d.remaining == 550);

    // Freed, the estimate stays spent.
    OK(sg_reserve(limiter, "alice", SG_CSTR, 50, NULL, &reservation));
    OK(sg_reservation_free(&reservation));
    OK(sg_reservation_free(&reservation));
    OK(sg_peek(limiter, "alice", SG_CSTR, 0, &d));
    CHECK(d.remaining == 500);

    // It outlives its limiter.
    OK(sg_reserve(limiter, "alice", SG_CSTR, 50, NULL, &reservation));
    freed(limiter, clock);
    OK(sg_reservation_settle(&reservation, 60, &d, NULL));
    CHECK(d.remaining == 440);
}

static void an_override_is_for_one_caller_and_may_end(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "1/min"}, &clock);
    bool removed = true;
    char quota[SG_QUOTA_SIZE];
    OK(sg_set_override(limiter, "alice", SG_CSTR, "5/min", 0));
    CHECK(allowed_of(9, limiter, "alice") == 5 && allowed_of(9, limiter, "bob") == 1);
    OK(sg_remove_override(limiter, "alice", SG_CSTR, &removed));
    CHECK(removed);
    OK(sg_remove_override(limiter, "alice", SG_CSTR, &removed));
    CHECK(!removed);

    OK(sg_set_override(limiter, "carol", SG_CSTR, "7 per 2 h burst 9", 10 * SECOND));
    OK(sg_quota_of(limiter, "carol", SG_CSTR, quota, sizeof quota));
    CHECK(strcmp(quota, "7 per 2 h burst 9") == 0);
    OK(sg_clock_advance(clock, 10 * SECOND));
    OK(sg_quota_of(limiter, "carol", SG_CSTR, quota, sizeof quota));
    CHECK(strcmp(quota, "1/min") == 0);
    freed(limiter, clock);
}

static void the_longest_quota_fits(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "1/min"}, &clock);
    const char *longest = "4611686018427387903 per 4611686018427387903 ns burst 4611686018427387902";
    char quota[SG_QUOTA_SIZE];
    OK(sg_set_override(limiter, "alice", SG_CSTR, longest, 0));
    OK(sg_quota_of(limiter, "alice", SG_CSTR, quota, sizeof quota));
    CHECK(strcmp(quota, longest) == 0 && strlen(quota) > 64);
    freed(limiter, clock);
}

static const char *tier_of(const char *key, size_t length, void *context) {
    ++*(int *)context;
    return length > 4 && memcmp(key, "gold", 4) == 0 ? "gold" : NULL;
}

static void tiers_have_their_own_quota(void) {
    sg_clock *clock;
    int calls = 0;
    const sg_tier tiers[] = {{"gold", "6/min"}, {"never assigned", "1/min"}};
    sg_limiter *limiter = made((sg_config){.quota = "2/min", .tiers = tiers, .tier_count = 2,
                                           .tier_of = tier_of, .tier_context = &calls}, &clock);
    CHECK(allowed_of(9, limiter, "gold-1") == 6 && allowed_of(9, limiter, "alice") == 2);
    CHECK(calls >= 18);
    OK(sg_limiter_set_tier_quota(limiter, "gold", "8/min"));
    CHECK(allowed_of(9, limiter, "gold-2") == 8);
    freed(limiter, clock);
}

static void an_interval_bucket_refills_at_once(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.burst = 5, .refill = 5, .window_ns = 10 * SECOND,
                                           .algorithm = "interval-bucket"}, &clock);
    CHECK(allowed_of(9, limiter, "alice") == 5);
    OK(sg_clock_advance(clock, 10 * SECOND - 1));
    CHECK(allowed_of(9, limiter, "alice") == 0);
    OK(sg_clock_advance(clock, 1));
    CHECK(allowed_of(9, limiter, "alice") == 5);
    freed(limiter, clock);
}

static void windows_and_shapers(void) {
    sg_clock *clock;
    // The clock starts 20 s into a minute.
    sg_limiter *limiter = made((sg_config){.quota = "3/min", .algorithm = "fixed-window"}, &clock);
    CHECK(allowed_of(9, limiter, "alice") == 3);
    OK(sg_clock_advance(clock, 40 * SECOND));
    CHECK(allowed_of(9, limiter, "alice") == 3);
    freed(limiter, clock);

    limiter = made((sg_config){.quota = "3/min", .algorithm = "first-hit-window"}, &clock);
    CHECK(allowed_of(9, limiter, "alice") == 3);
    OK(sg_clock_advance(clock, 59 * SECOND));
    CHECK(allowed_of(9, limiter, "alice") == 0);
    freed(limiter, clock);

    limiter = made((sg_config){.quota = "10/s burst 3", .algorithm = "leaky-shaper"}, &clock);
    sg_decision d;
    OK(sg_check(limiter, "alice", SG_CSTR, 1, &d));
    CHECK(d.wait_ns == 0);
    OK(sg_check(limiter, "alice", SG_CSTR, 1, &d));
    CHECK(d.verdict == SG_ALLOWED && d.wait_ns == SECOND / 10);
    freed(limiter, clock);

    limiter = made((sg_config){.quota = "1/s burst 3", .start = "empty"}, &clock);
    CHECK(!sg_allow(limiter, "alice"));
    OK(sg_clock_advance(clock, 2 * SECOND));
    CHECK(allowed_of(9, limiter, "alice") == 2);
    freed(limiter, clock);
}

// Calls of many new callers, and how many of them are allowed.
static int flood(sg_limiter *limiter, int callers) {
    int allowed = 0;
    char key[32];
    for (int caller = 0; caller < callers; caller++) {
        snprintf(key, sizeof key, "caller %d", caller);
        allowed += sg_allow(limiter, key);
    }
    return allowed;
}

static void a_full_table_evicts_or_denies(void) {
    const int callers = 20000;
    sg_clock *clock;
    sg_counts counts;
    sg_limiter *limiter = made((sg_config){.quota = "1/h", .max_callers = 100}, &clock);
    CHECK(flood(limiter, callers) == callers);
    OK(sg_limiter_counts(limiter, &counts));
    CHECK(counts.allowed == (uint64_t)callers && counts.denied == 0 && counts.evictions > 0);
    freed(limiter, clock);

    for (int protect = 0; protect < 2; protect++) {
        const char *when_full = protect ? "protect" : "deny";
        limiter = made((sg_config){.quota = "1/h", .max_callers = 100, .when_full = when_full}, &clock);
        int allowed = flood(limiter, callers);
        CHECK(allowed >= 100 && allowed < 1000);
        OK(sg_limiter_counts(limiter, &counts));
        CHECK(counts.evictions == 0 && counts.denied == (uint64_t)(callers - allowed));
        sg_decision d;
        OK(sg_check(limiter, "one more", SG_CSTR, 1, &d));
        CHECK(d.verdict == SG_DENIED && d.table_full && d.retry_after_ns == 3600 * SECOND);
        freed(limiter, clock);
    }
}

static void idle_callers_are_purged(void) {
    sg_clock *clock;
    size_t callers = 0, purged = 0;
    sg_limiter *limiter = made((sg_config){.quota = "1/s"}, &clock);
    CHECK(flood(limiter, 100) == 100);
    OK(sg_limiter_active_callers(limiter, &callers));
    CHECK(callers == 100);
    OK(sg_limiter_purge_idle(limiter, &purged));
    CHECK(purged == 0);
    OK(sg_clock_advance(clock, SECOND));
    OK(sg_limiter_active_callers(limiter, &callers));
    CHECK(callers == 0);
    OK(sg_limiter_purge_idle(limiter, &purged));
    CHECK(purged == 100);
    OK(sg_limiter_purge_idle(limiter, NULL));
    freed(limiter, clock);
}

static void a_batch_decides_in_order(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "2/min"}, &clock);
    const char *keys[] = {"alice", "bob", "alice", NULL, "alice"};
    const size_t lengths[] = {5, 3, SG_CSTR, 0, 5};
    const sg_verdict verdicts[] = {SG_ALLOWED, SG_ALLOWED, SG_ALLOWED, SG_ALLOWED, SG_DENIED};
    sg_decision d[5];
    OK(sg_check_many(limiter, keys, lengths, 5, d));
    for (int key = 0; key < 5; key++) {
        CHECK(d[key].verdict == verdicts[key]);
    }
    OK(sg_check_many(limiter, keys, NULL, 2, d));
    CHECK(d[0].verdict == SG_DENIED && d[1].verdict == SG_ALLOWED);
    OK(sg_check_many(limiter, NULL, NULL, 0, NULL));
    freed(limiter, clock);
}

static void a_quota_can_be_changed(void) {
    sg_clock *clock;
    sg_limiter *limiter = made((sg_config){.quota = "10/min"}, &clock);
    CHECK(allowed_of(7, limiter, "alice") == 7);
    OK(sg_limiter_set_quota(limiter, "20/min"));
    CHECK(allowed_of(99, limiter, "alice") == 13);
    freed(limiter, clock);
}

static void a_clock_can_be_shared_and_freed_early(void) {
    sg_clock *clock;
    sg_limiter *one = made((sg_config){.quota = "1/s"}, &clock), *other = NULL;
    uint64_t now = 0;
    OK(sg_limiter_new(&(sg_config){.quota = "1/s", .clock = clock}, &other));
    CHECK(allowed_of(2, one, "alice") == 1 && allowed_of(2, other, "alice") == 1);
    OK(sg_clock_set(clock, START + SECOND));
    OK(sg_clock_now(clock, &now));
    CHECK(now == START + SECOND);
    OK(sg_clock_free(&clock));
    CHECK(sg_allow(one, "alice") && sg_allow(other, "alice"));
    OK(sg_limiter_free(&one));
    OK(sg_limiter_free(&other));
}

static void the_system_clock_refills(void) {
    sg_limiter *limiter = NULL;
    OK(sg_limiter_new(&(sg_config){.quota = "1/us"}, &limiter));
    int allowed = 0;
    // Bounded: a check takes some nanoseconds.
    for (long call = 0; call < 100000000 && allowed < 3; call++) {
        allowed += sg_allow(limiter, "alice");
    }
    CHECK(allowed == 3);
    OK(sg_limiter_free(&limiter));
}

static void shutting_down_twice_does_no_harm(void) {
    sg_limiter *limiter = NULL;
    OK(sg_limiter_free(&limiter));
    OK(sg_limiter_new(NULL, &limiter));
    OK(sg_limiter_free(&limiter));
    CHECK(limiter == NULL);
    OK(sg_limiter_free(&limiter));
    OK(sg_limiter_free(NULL));
    OK(sg_clock_free(NULL));
    OK(sg_reservation_free(NULL));
}

static void the_version_is_that_of_the_package(void) {
    CHECK(strcmp(sg_version(), VERSION) == 0);
}

static sg_limiter *until_exit;

static void call_at_exit(void) {
    CHECK(sg_allow(until_exit, "alice"));
    OK(sg_limiter_free(&until_exit));
}

static void calls_at_exit_work(void) {
    OK(sg_limiter_new(NULL, &until_exit));
    CHECK(atexit(call_at_exit) == 0);
}

int main(void) {
    const struct test tests[] = {
        TEST(without_a_configuration_there_are_defaults),
        TEST(a_bucket_has_capacity_refill_and_window),
        TEST(callers_have_their_own_allowance),
        TEST(callers_without_a_key_are_anonymous_and_share_one),
        TEST(keys_are_bytes),
        TEST(a_decision_says_everything),
        TEST(a_peek_spends_nothing_and_a_debit_always),
        TEST(reservations_are_settled_or_cancelled),
        TEST(an_override_is_for_one_caller_and_may_end),
        TEST(the_longest_quota_fits),
        TEST(tiers_have_their_own_quota),
        TEST(an_interval_bucket_refills_at_once),
        TEST(windows_and_shapers),
        TEST(a_full_table_evicts_or_denies),
        TEST(idle_callers_are_purged),
        TEST(a_batch_decides_in_order),
        TEST(a_quota_can_be_changed),
        TEST(a_clock_can_be_shared_and_freed_early),
        TEST(the_system_clock_refills),
        TEST(shutting_down_twice_does_no_harm),
        TEST(the_version_is_that_of_the_package),
        TEST(calls_at_exit_work),
    };
    return RUN(tests);
}

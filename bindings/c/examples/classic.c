// The classic interface: init, allow, shutdown, with one limiter for the whole program.
//
//     cc classic.c $(pkg-config --cflags --libs spillgate) && ./a.out
#include <spillgate.h>
#include <stdio.h>

static sg_limiter *limiter;

// Every client has a bucket of `capacity` tokens, which is refilled with `refill` tokens per window.
// Without a configuration there are defaults: SG_DEFAULT_QUOTA, 100,000 clients.
static bool rate_limit_init(const sg_config *config) {
    if (sg_limiter_new(config, &limiter) == SG_OK) {
        return true;
    }
    fprintf(stderr, "rate limit: %s\n", sg_last_error());
    return false;
}

// May this client make a request? A client without a name is anonymous, with one bucket for all of them.
static bool rate_limit_allow(const char *client) {
    return sg_allow(limiter, client);
}

// As often as you like.
static void rate_limit_shutdown(void) {
    sg_limiter_free(&limiter);
}

static int allowed_of(int requests, const char *client) {
    int allowed = 0;
    while (requests-- > 0) {
        allowed += rate_limit_allow(client);
    }
    return allowed;
}

int main(void) {
    const uint64_t minute = 60ull * 1000 * 1000 * 1000;
    const sg_config config = {
        .burst = 5,                      // capacity of a bucket
        .refill = 5,                     // all of it...
        .window_ns = minute,             // ...once per minute,
        .algorithm = "interval-bucket",  // at once instead of one every 12 seconds
        .max_callers = 10000,
        .when_full = "deny",             // or "evict", the default, or "protect"
    };
    if (!rate_limit_init(&config)) {
        return 1;
    }
    printf("alice: %d of 8 requests\n", allowed_of(8, "alice"));

    // A client with a quota of its own, for an hour.
    if (sg_set_override(limiter, "bob", SG_CSTR, "100/min", 60 * minute) != SG_OK) {
        fprintf(stderr, "%s\n", sg_last_error());
    }
    printf("bob: %d of 8 requests\n", allowed_of(8, "bob"));
    printf("anonymous: %d of 8 requests\n", allowed_of(4, NULL) + allowed_of(4, ""));

    sg_counts counts;
    if (sg_limiter_counts(limiter, &counts) == SG_OK) {
        printf("%d allowed, %d denied\n", (int)counts.allowed, (int)counts.denied);
    }
    rate_limit_shutdown();
    rate_limit_shutdown();

    if (!rate_limit_init(NULL)) {
        return 1;
    }
    printf("with defaults: %d of 8 requests\n", allowed_of(8, "carol"));
    rate_limit_shutdown();
    return 0;
}

/* libspillgate: a rate limiter for programs in C.
 *
 * A limiter gives every caller, known by a key of bytes, its own allowance: by default a bucket that
 * holds up to `burst` tokens and refills at a steady rate.
 *
 *     sg_limiter *limiter = NULL;
 *     if (sg_limiter_new(NULL, &limiter) != SG_OK) {
 *         fprintf(stderr, "%s\n", sg_last_error());
 *     }
 *     if (sg_allow(limiter, "203.0.113.7")) { ... }
 *     sg_limiter_free(&limiter);
 *
 * Keys have a length, or SG_CSTR if they end with NUL. NULL or an empty key means anonymous callers,
 * who share the allowance of the key "anonymous". Times are in nanoseconds. Texts are UTF-8 and end with NUL.
 *
 * Threads: every function can be called from any thread at any time. Only, a handle must not be
 * freed while another thread uses it. No function is async-signal-safe.
 *
 * fork: a child has a copy of every limiter, with what was spent until then; both go on independently.
 * Calls in progress in other threads do no harm. Do not fork in a signal handler.
 *
 * Handles: NULL and handles that have been freed are recognised and reported as errors; a handle freed
 * long ago, with more than 64 of its kind since, may be taken for a new one. Any other invalid pointer
 * is undefined behaviour, as everywhere in C.
 *
 * Made by cbindgen from bindings/c/src. */

#ifndef SPILLGATE_H
#define SPILLGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As the length of a key: it ends at its first NUL.
#define SG_CSTR SIZE_MAX

// The quota of a limiter without one.
#define SG_DEFAULT_QUOTA "10/s burst 20"

// As `max_debt`: no debt at all.
#define SG_NO_DEBT UINT64_MAX

// For times: never.
#define SG_NEVER_NS UINT64_MAX

// A size for the text of any quota, with its NUL.
#define SG_QUOTA_SIZE 128



// The longest key, in bytes: a longer one is more likely a mistake than a caller.
#define SG_MAX_KEY 1048576

// What a check decided.
typedef enum {
    // Denied: the same call would be allowed after `retry_after_ns`.
    SG_DENIED = 0,
    // The call may proceed, after `wait_ns` if a shaper decided.
    SG_ALLOWED = 1,
    // Denied, and waiting does not help: the cost exceeds the limit, or a quota that never
    // refills is used up.
    SG_NEVER = 2,
} sg_verdict;

// What a call returns. A denied call is `SG_OK`: see `sg_decision`.
typedef enum {
    // The call has done its work.
    SG_OK = 0,
    // An argument is NULL, out of range or unknown.
    SG_ERROR_ARGUMENT = 1,
    // A text is not UTF-8.
    SG_ERROR_ENCODING = 2,
    // A handle has been freed, or is of another kind.
    SG_ERROR_HANDLE = 3,
    // A quota is invalid: its numbers or its text.
    SG_ERROR_QUOTA = 4,
    // The algorithm is unknown, or cannot count the quota.
    SG_ERROR_ALGORITHM = 5,
    // There is no memory for that many callers.
    SG_ERROR_CAPACITY = 6,
    // A tier is unknown, duplicate or incompatible.
    SG_ERROR_TIER = 7,
    // A fault of the library. The call may or may not have taken effect.
    SG_ERROR_INTERNAL = 8,
} sg_status;

// A clock that the program moves, for tests without sleeping. Any number of limiters can share
// one; freeing it leaves them as they are.
typedef struct sg_clock sg_clock;

// A rate limiter: one quota, any number of callers, each with its own allowance.
//
// Every function can be called from any number of threads at the same time, except that a limiter
// must not be freed while another thread uses it.
typedef struct sg_limiter sg_limiter;

// A cost spent in advance, to be settled once the actual cost is known.
typedef struct sg_reservation sg_reservation;

// A decision: allowed or not, what remains, and when to try again.
typedef struct {
    // Allowed, denied or never.
    sg_verdict verdict;
    // Denied only because the table has no slot for a new caller.
    bool table_full;
    // The most that can be spent at once: the burst.
    uint64_t limit;
    // How much can be spent now.
    uint64_t remaining;
    // The exact time until the same call would be allowed: 0 if it was, `SG_NEVER_NS` if never.
    uint64_t retry_after_ns;
    // The time until the whole limit is available again, as the quota states it: for headers.
    // `SG_NEVER_NS` if the quota never refills.
    uint64_t reset_after_ns;
    // The same to the nanosecond, which may be later since buckets keep whole nanoseconds.
    uint64_t idle_after_ns;
    // How long an allowed call should wait before it proceeds: 0 unless the algorithm is
    // "leaky-shaper".
    uint64_t wait_ns;
    // The time in which the whole limit refills, or the length of the window. `SG_NEVER_NS` if the
    // quota never refills.
    uint64_t window_ns;
} sg_decision;

// A quota for some callers: those for which `tier_of` returns this name.
typedef struct {
    // The name of the tier.
    const char *name;
    // Its quota, as text.
    const char *quota;
} sg_tier;

// Returns the name of a caller's tier, or NULL for the limiter's own quota.
//
// Called on every check, in the thread that checks, with `tier_context`. It must return (no
// `longjmp`, no C++ exception) and must not call the same limiter.
typedef const char *(*sg_tier_of)(const char *key, size_t key_length, void *tier_context);

// What a limiter is made from. Whatever is 0 or NULL has its default, and a NULL configuration
// has all of them: initialise it with `{0}` or designated initialisers.
typedef struct {
    // The quota as text, such as "10/s burst 20", "100 per 15 min" or "burst 5", which never
    // refills. By default it is made from the three numbers below or, if all are 0, is
    // `SG_DEFAULT_QUOTA`.
    const char *quota;
    // The capacity of a caller's bucket: the most that can be spent at once. By default `refill`.
    uint64_t burst;
    // How much refills per window.
    uint64_t refill;
    // The time in which that much refills. By default one second.
    uint64_t window_ns;
    // "token-bucket" by default, "leaky-bucket", "leaky-shaper", "interval-bucket",
    // "fixed-window", "first-hit-window" or "sliding-window".
    const char *algorithm;
    // What happens to a new caller when the table is full: "evict" by default, "protect" or
    // "deny".
    const char *when_full;
    // What a new caller may spend: "full" by default, or "empty". For buckets of tokens.
    const char *start;
    // How many callers can have something spent at the same time: 100,000 by default. About 26
    // bytes each, allocated at once.
    size_t max_callers;
    // How much debits may spend beyond the burst: by default the refill of a day or ten bursts,
    // whichever is more. `SG_NO_DEBT` for none.
    uint64_t max_debt;
    // Quotas for some callers, which share the table.
    const sg_tier *tiers;
    // How many tiers there are.
    size_t tier_count;
    // The function that assigns tiers.
    sg_tier_of tier_of;
    // What it is called with. Must be usable from every thread that checks, as long as the
    // limiter or a reservation of it exists.
    void *tier_context;
    // A clock that the program moves, for tests. By default the system's.
    const sg_clock *clock;
    // For later versions: 0.
    uint64_t reserved[4];
} sg_config;

// What a limiter has decided since it was made.
typedef struct {
    // Allowed calls, except those of cost 0.
    uint64_t allowed;
    // Denied calls.
    uint64_t denied;
    // Callers evicted while they had something spent. If it keeps growing, raise `max_callers`.
    uint64_t evictions;
} sg_counts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Why the last failed call of this thread failed: the wrong value, and what would be right.
//
// Empty if none has failed. Valid until the next call of this thread fails. A call that succeeds
// leaves it, so look at it only after one that has failed.
const char *sg_last_error(void);

// The version of the library, such as "0.1.0".
const char *sg_version(void);

// `retry_after_ns` in seconds, rounded up, for a `Retry-After` header. `UINT64_MAX` if there is no
// use in trying again, or the decision is NULL.
uint64_t sg_retry_after_seconds(const sg_decision *decision);

// Makes a limiter. A NULL configuration has all defaults.
//
// On an error, `*limiter` is NULL. Free it with `sg_limiter_free`.
sg_status sg_limiter_new(const sg_config *config, sg_limiter **limiter);

// Frees a limiter and sets the pointer to NULL. A NULL pointer, or one to NULL, is left alone, so
// shutting down twice does no harm. Reservations can still be settled.
sg_status sg_limiter_free(sg_limiter **limiter);

// Changes the quota of all callers without a tier or an override. What a caller has spent stays
// spent, in tokens, up to the new burst. Takes about 10 ms per million callers.
sg_status sg_limiter_set_quota(const sg_limiter *limiter, const char *quota);

// Changes the quota of a tier.
sg_status sg_limiter_set_tier_quota(const sg_limiter *limiter, const char *tier, const char *quota);

// What the limiter has decided since it was made.
sg_status sg_limiter_counts(const sg_limiter *limiter, sg_counts *counts);

// How many callers are below their full quota, except those with an override. Scans the table.
sg_status sg_limiter_active_callers(const sg_limiter *limiter, size_t *callers);

// Clears the slots of idle callers, and stores how many there were unless `purged` is NULL. Never
// necessary: the slot of an idle caller is reused anyway. Scans the table.
sg_status sg_limiter_purge_idle(const sg_limiter *limiter, size_t *purged);

// Is a call of this caller allowed? Spends 1 if it is.
//
// The key ends with NUL; NULL or "" means the caller "anonymous". False on an
// error too: `sg_check` tells the two apart.
bool sg_allow(const sg_limiter *limiter, const char *key);

// `sg_allow` for a call of any cost, and a key of any bytes.
bool sg_allow_n(const sg_limiter *limiter, const char *key, size_t key_length, uint64_t cost);

// Spends `cost` if all of it is available now, and stores the decision. A denial changes nothing. A
// cost of 0 is always allowed.
sg_status sg_check(const sg_limiter *limiter,
                   const char *key,
                   size_t key_length,
                   uint64_t cost,
                   sg_decision *decision);

// What `sg_check` would decide, without spending: what remains is what there is now.
sg_status sg_peek(const sg_limiter *limiter,
                  const char *key,
                  size_t key_length,
                  uint64_t cost,
                  sg_decision *decision);

// Checks many callers in order, each at a cost of 1, and stores as many decisions. Faster than one
// by one if there are more callers than the processor's caches hold.
//
// Without lengths, keys end with NUL. If one key is invalid, none is checked.
sg_status sg_check_many(const sg_limiter *limiter,
                        const char *const *keys,
                        const size_t *key_lengths,
                        size_t count,
                        sg_decision *decisions);

// Spends `amount` unconditionally, into debt beyond the burst if necessary. Stores what is left
// and what `max_debt` did not allow to spend, unless they are NULL.
sg_status sg_debit(const sg_limiter *limiter,
                   const char *key,
                   size_t key_length,
                   uint64_t amount,
                   sg_decision *left,
                   uint64_t *uncharged);

// Returns `amount` to a caller, but never more than it has spent.
sg_status sg_refund(const sg_limiter *limiter, const char *key, size_t key_length, uint64_t amount);

// Forgets what a caller has spent.
sg_status sg_reset(const sg_limiter *limiter, const char *key, size_t key_length);

// Gives one caller its own quota, for `for_ns` nanoseconds, or until it is removed if that is 0.
// What it has spent stays spent.
sg_status sg_set_override(const sg_limiter *limiter,
                          const char *key,
                          size_t key_length,
                          const char *quota,
                          uint64_t for_ns);

// Removes a caller's own quota, and stores whether it had one unless `removed` is NULL. What
// it has spent before and under it counts as far as it has not been refilled.
sg_status sg_remove_override(const sg_limiter *limiter,
                             const char *key,
                             size_t key_length,
                             bool *removed);

// Writes the quota of a caller as text: its override, its tier's or the limiter's. `SG_QUOTA_SIZE`
// bytes are always enough; if the text and its NUL do not fit, nothing is written.
sg_status sg_quota_of(const sg_limiter *limiter,
                      const char *key,
                      size_t key_length,
                      char *buffer,
                      size_t buffer_size);

// Spends an estimated cost in advance, for work whose cost is known only afterwards. Stores the
// decision unless it is NULL.
//
// If the estimate is denied, the status is `SG_OK` and `*reservation` is NULL. Otherwise end it with
// `sg_reservation_settle`, `sg_reservation_cancel` or `sg_reservation_free`.
sg_status sg_reserve(const sg_limiter *limiter,
                     const char *key,
                     size_t key_length,
                     uint64_t estimate,
                     sg_decision *decision,
                     sg_reservation **reservation);

// Replaces the estimate with the actual cost: debits the difference, into debt if necessary, or
// returns it, except what has been refilled since. Stores what is left and what `max_debt` did
// not allow to spend, unless they are NULL. Frees the reservation and sets the pointer to NULL.
sg_status sg_reservation_settle(sg_reservation **reservation,
                                uint64_t actual,
                                sg_decision *left,
                                uint64_t *uncharged);

// Undoes a reservation if nothing has been spent since, and stores whether it did unless `undone`
// is NULL. Otherwise the estimate stays spent: to leave the queue of a "leaky-shaper", where
// only the last call can. Elsewhere settle at 0. Frees the reservation and sets the pointer to NULL.
sg_status sg_reservation_cancel(sg_reservation **reservation,
                                bool *undone);

// Frees a reservation, whose estimate stays spent, and sets the pointer to NULL. A NULL pointer,
// or one to NULL, is left alone.
sg_status sg_reservation_free(sg_reservation **reservation);

// Makes a clock that reads `now_ns` nanoseconds since the Unix epoch.
sg_status sg_clock_new(uint64_t now_ns, sg_clock **clock);

// Moves a clock forward.
sg_status sg_clock_advance(const sg_clock *clock, uint64_t by_ns);

// Sets a clock, also back. That never allows a call that would be denied if time had stopped.
sg_status sg_clock_set(const sg_clock *clock, uint64_t now_ns);

// Reads a clock.
sg_status sg_clock_now(const sg_clock *clock, uint64_t *now_ns);

// Frees a clock and sets the pointer to NULL. A NULL pointer, or one to NULL, is left alone.
sg_status sg_clock_free(sg_clock **clock);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SPILLGATE_H */

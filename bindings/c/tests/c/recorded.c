// Compares every recorded answer of the conformance suite: recorded FILE.
#include "check.h"

enum { FIELDS = 9 };

// Splits a line at its tabs, and returns how many fields there are.
static size_t split(char *line, char *fields[FIELDS]) {
    size_t count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *next = line; next != NULL && count < FIELDS; count++) {
        fields[count] = next;
        next = strchr(next, '\t');
        if (next != NULL) {
            *next++ = '\0';
        }
    }
    return count;
}

static uint64_t number(const char *field) {
    return strcmp(field, "-") == 0 ? SG_NEVER_NS : strtoull(field, NULL, 10);
}

static sg_decision call(sg_limiter *limiter, const char *call, uint64_t amount) {
    sg_decision d;
    if (strcmp(call, "check") == 0) {
        OK(sg_check(limiter, "ann", SG_CSTR, amount, &d));
        return d;
    }
    if (strcmp(call, "debit") == 0) {
        OK(sg_debit(limiter, "ann", SG_CSTR, amount, NULL, NULL));
    } else if (strcmp(call, "refund") == 0) {
        OK(sg_refund(limiter, "ann", SG_CSTR, amount));
    } else if (strcmp(call, "reset") == 0) {
        OK(sg_reset(limiter, "ann", SG_CSTR));
    } else {
        CHECK(strcmp(call, "peek") == 0);
    }
    OK(sg_peek(limiter, "ann", SG_CSTR, strcmp(call, "peek") == 0 ? amount : 0, &d));
    return d;
}

static const char *verdict(const sg_decision *decision) {
    return decision->verdict == SG_ALLOWED ? "allowed" : decision->verdict == SG_DENIED ? "denied" : "never";
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    CHECK(file != NULL);
    char line[1024], *field[FIELDS];
    int rows = 0, recordings = 0;
    uint64_t limit = 0;
    sg_limiter *limiter = NULL;
    sg_clock *clock = NULL;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t fields = split(line, field);
        if (field[0][0] == '#') {
            continue;
        }
        if (strcmp(field[0], "recording") == 0) {
            CHECK(fields == 6);
            OK(sg_limiter_free(&limiter));
            OK(sg_clock_free(&clock));
            OK(sg_clock_new(1699920000ull * SECOND, &clock));
            OK(sg_limiter_new(&(sg_config){.algorithm = field[2], .start = field[3], .quota = field[4],
                                           .clock = clock}, &limiter));
            limit = number(field[5]);
            recordings++;
            continue;
        }
        CHECK(strcmp(field[0], "row") == 0 && fields == FIELDS);
        OK(sg_clock_set(clock, number(field[1])));
        sg_decision d = call(limiter, field[2], number(field[3]));
        rows++;
        if (strcmp(verdict(&d), field[4]) != 0 || d.limit != limit || d.remaining != number(field[5]) ||
            d.retry_after_ns != number(field[6]) || d.idle_after_ns != number(field[7]) ||
            d.wait_ns != number(field[8])) {
            fprintf(stderr, "recording %d, row %d: %s at %s: %s, %llu left\n", recordings, rows, field[2],
                    field[1], verdict(&d), (unsigned long long)d.remaining);
            return 1;
        }
    }
    fclose(file);
    OK(sg_limiter_free(&limiter));
    OK(sg_clock_free(&clock));
    CHECK(recordings > 25 && rows > 150);
    printf("  ok: %d recorded answers in %d recordings\n", rows, recordings);
    return 0;
}

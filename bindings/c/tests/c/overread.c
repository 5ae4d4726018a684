// A mistake that AddressSanitizer must find inside the library: a key that is shorter than its length.
#include "check.h"

int main(void) {
    sg_limiter *limiter = NULL;
    OK(sg_limiter_new(NULL, &limiter));
    char *key = malloc(4);
    CHECK(key != NULL);
    memcpy(key, "four", 4);
    sg_allow_n(limiter, key, 8, 1);
    puts("nobody has noticed");
    return 0;
}

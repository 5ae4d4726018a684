// A small HTTP service with a rate limit in front of its handler: a bucket per client, known by its
// API key or, without one, by its address.
//
//     cc -pthread middleware.c $(pkg-config --cflags --libs spillgate) -o middleware
//     ./middleware 8080 &
//     curl -i -H 'X-Api-Key: alice' http://127.0.0.1:8080/
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spillgate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 4, REQUEST_BYTES = 4096 };

static sg_limiter *limiter;

struct request {
    int socket;
    char key[128];  // who makes it
};

// API keys of one customer are of a tier with a larger quota.
static const char *tier_of(const char *key, size_t length, void *context) {
    (void)context;
    return length >= 5 && strncmp(key, "gold-", 5) == 0 ? "gold" : NULL;
}

static void respond(const struct request *request, const char *status, const sg_decision *limit,
                    const char *body) {
    char text[1024];
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
                          "X-RateLimit-Limit: %llu\r\nX-RateLimit-Remaining: %llu\r\n",
                          status, strlen(body), (unsigned long long)limit->limit,
                          (unsigned long long)limit->remaining);
    if (limit->verdict == SG_DENIED) {
        length += snprintf(text + length, sizeof text - (size_t)length, "Retry-After: %llu\r\n",
                           (unsigned long long)sg_retry_after_seconds(limit));
    }
    length += snprintf(text + length, sizeof text - (size_t)length, "\r\n%s", body);
    for (char *rest = text; length > 0;) {
        ssize_t sent = send(request->socket, rest, (size_t)length, MSG_NOSIGNAL);
        if (sent <= 0) {
            return;
        }
        rest += sent;
        length -= (int)sent;
    }
}

// What the service does.
static void handle(const struct request *request, const sg_decision *limit) {
    respond(request, "200 OK", limit, "hello\n");
}

// The middleware: decides, and calls the handler or refuses.
static void limited(const struct request *request) {
    sg_decision limit = {0};
    if (sg_check(limiter, request->key, SG_CSTR, 1, &limit) != SG_OK) {
        // A mistake in this program: serve the request, and say so.
        fprintf(stderr, "rate limit: %s\n", sg_last_error());
        handle(request, &limit);
    } else if (limit.verdict == SG_ALLOWED) {
        handle(request, &limit);
    } else {
        respond(request, "429 Too Many Requests", &limit, "slow down\n");
    }
}

// Reads the head of a request, and who makes it: the peer's address, unless there is an API key. A service
// verifies the key here: one that anybody can invent gives everybody as many buckets as they like.
static bool read_request(struct request *request, const struct sockaddr_in *peer) {
    char head[REQUEST_BYTES + 1], *end;
    size_t length = 0;
    head[0] = '\0';
    while ((end = strstr(head, "\r\n\r\n")) == NULL) {
        ssize_t got = recv(request->socket, head + length, REQUEST_BYTES - length, 0);
        if (got <= 0) {
            return false;
        }
        length += (size_t)got;
        head[length] = '\0';
    }
    end[2] = '\0';
    inet_ntop(AF_INET, &peer->sin_addr, request->key, sizeof request->key);
    for (char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, "X-Api-Key: ", 11) == 0) {
            size_t size = strcspn(line + 13, "\r\n");
            snprintf(request->key, sizeof request->key, "%.*s", (int)size, line + 13);
        }
    }
    return true;
}

static void *serve(void *listener) {
    for (;;) {
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        struct request request = {.socket = accept(*(int *)listener, (struct sockaddr *)&peer, &size)};
        if (request.socket < 0) {
            if (errno == ECONNABORTED || errno == EINTR) {
                continue;
            }
            return NULL;  // The listener is shut down.
        }
        // A client that sends nothing must not keep the thread.
        const struct timeval patience = {.tv_sec = 5};
        setsockopt(request.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (read_request(&request, &peer)) {
            limited(&request);
        }
        close(request.socket);
    }
}

// middleware PORT: serves on 127.0.0.1 until it is interrupted. Port 0 is a free one.
int main(int argc, char **argv) {
    const sg_tier tiers[] = {{.name = "gold", .quota = "50/s burst 100"}};
    const sg_config config = {
        .quota = "10/min burst 5", .tiers = tiers, .tier_count = 1, .tier_of = tier_of};
    if (sg_limiter_new(&config, &limiter) != SG_OK) {
        fprintf(stderr, "rate limit: %s\n", sg_last_error());
        return 1;
    }
    // Inherited by all threads, so that only sigwait below sees them.
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);

    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 8080)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        perror("middleware");
        return 1;
    }
    pthread_t threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++) {
        pthread_create(&threads[thread], NULL, serve, &listener);
    }
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);

    int signal;
    sigwait(&stop, &signal);
    shutdown(listener, SHUT_RDWR);
    for (int thread = 0; thread < THREADS; thread++) {
        pthread_join(threads[thread], NULL);
    }
    close(listener);
    // After the last thread that uses it.
    sg_limiter_free(&limiter);
    return 0;
}

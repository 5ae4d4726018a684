/* A clock that is ahead by as many microseconds as stand in a file, for a server that reads it
   with gettimeofday. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *shift;

__attribute__((constructor)) static void begin(void) {
  int file = open(getenv("CLOCK_SHIFT"), O_RDONLY);
  void *page = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) abort();
  shift = page;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  long long micros = now.tv_sec * 1000000LL + now.tv_nsec / 1000 + *shift;
  time->tv_sec = micros / 1000000;
  time->tv_usec = micros % 1000000;
  return 0;
}

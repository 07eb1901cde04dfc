/* A library whose constructor does something that a copy of the process would not have, or would share. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static int file = -1;

#ifdef THREAD
static void *wait_for_ever(void *none) {
  for (;;) pause();
  return none;
}
#endif

__attribute__((constructor)) static void begin(void) {
#ifdef THREAD
  pthread_t thread;
  pthread_create(&thread, 0, wait_for_ever, 0);
#else
  file = open("/dev/zero", O_RDONLY);
#endif
}

int early(void) { return file; }

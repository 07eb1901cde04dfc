/* The first thread ends the program while another one still works. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include "explored.h"

static atomic_int done;

static void *worker(void *unused) {
  done = 1;
  done = 2;
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
  int seen = done;
  END_STATE(seen);
  return 0;
}

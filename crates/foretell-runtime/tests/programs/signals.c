/* A signal handler cuts a read short; another one does not. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t calls;
static volatile int interrupted, taken;

static void handler(int signal) {
  (void)signal;
  calls++;
}

static void *reader(void *unused) {
  (void)unused;
  char byte;
  if (read(ends[0], &byte, 1) == -1 && errno == EINTR)
    interrupted = 1;
  while (read(ends[0], &byte, 1) == -1)
    ;
  taken = 1;
  return 0;
}

int main(void) {
  pthread_t thread;
  struct sigaction action = {.sa_handler = handler};
  sigaction(SIGUSR1, &action, 0);
  signal(SIGUSR2, handler);
  if (pipe(ends) != 0)
    return 99;
  pthread_create(&thread, 0, reader, 0);
  while (!interrupted) {
    pthread_kill(thread, SIGUSR1); /* it may come before the read */
    usleep(1000);
  }
  pthread_kill(thread, SIGUSR2);
  raise(SIGUSR2);
  if (write(ends[1], "x", 1) != 1)
    return 98;
  pthread_join(thread, 0);
  return taken == 1 && calls >= 2 ? 0 : 1;
}

/* Order violation (Mozilla's nsThread, Lu et al. 2008): a thread is created, and what it works with
 * is set up after that. It nearly always comes to use it late enough. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct configuration {
  int port;
  int connections;
};

static struct configuration *configuration;
static long requests;

static long checksum(const unsigned char *bytes, int count) {
  long sum = 0;
  for (int i = 0; i < count; i++) sum = sum * 31 + bytes[i];
  return sum;
}

static void *listener(void *greeting) {
  requests = checksum(greeting, 8);
  usleep(20000); /* until the first connection comes */
  requests += configuration->connections; /* BUG: use */
  return NULL;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, listener, "220 mail");
  struct configuration *loaded = malloc(sizeof *loaded);
  loaded->port = 25;
  loaded->connections = 100;
  configuration = loaded; /* BUG: definition */
  pthread_join(thread, NULL);
  printf("%ld\n", requests);
  free(loaded);
  return 0;
}

/* Apache httpd, bug 25520: the access log's buffer. Workers append their line without a lock: both
 * take the same `used` as their place, one line overwrites the other, and `used` counts one only. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct buffered_log {
  char bytes[256];
  size_t used;
  int lines;
};

static struct buffered_log access_log;

static void log_write(struct buffered_log *log, const char *line) {
  size_t length = strlen(line);
  if (log->used + length > sizeof log->bytes) return;
  char *place = log->bytes + log->used;
  memcpy(place, line, length);
  log->used += length; /* BUG: used */
  log->lines++;        /* BUG: lines */
}

static void *worker(void *line) {
  log_write(&access_log, line);
  return NULL;
}

int main(void) {
  pthread_t workers[2];
  pthread_create(&workers[0], NULL, worker, "GET /index.html 200\n");
  pthread_create(&workers[1], NULL, worker, "GET /logo.png 404\n");
  for (int i = 0; i < 2; i++) pthread_join(workers[i], NULL);
  printf("%d lines, %zu bytes\n", access_log.lines, access_log.used);
  return 0;
}

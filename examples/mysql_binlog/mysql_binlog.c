/* MySQL, bug 791: rotating the binary log closes it and opens the next one. In between, a statement
 * finds the log closed, takes that for "logging is off" and is lost for replication. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum log_state { LOG_CLOSED, LOG_OPEN };

static struct {
  pthread_mutex_t lock;
  enum log_state state;
  int file;
  int entries;
} binlog = {PTHREAD_MUTEX_INITIALIZER, LOG_OPEN, 1, 0};

static int executed;

static void close_log(void) {
  pthread_mutex_lock(&binlog.lock);
  binlog.state = LOG_CLOSED; /* BUG: first */
  pthread_mutex_unlock(&binlog.lock);
}

static void open_log(int file) {
  pthread_mutex_lock(&binlog.lock);
  binlog.file = file;
  binlog.state = LOG_OPEN; /* BUG: second */
  pthread_mutex_unlock(&binlog.lock);
}

static void rotate_log(void) {
  close_log();
  open_log(2);
}

static int is_open(void) {
  pthread_mutex_lock(&binlog.lock);
  int open = binlog.state == LOG_OPEN; /* BUG: remote */
  pthread_mutex_unlock(&binlog.lock);
  return open;
}

static void append_entry(void) {
  pthread_mutex_lock(&binlog.lock);
  binlog.entries++;
  pthread_mutex_unlock(&binlog.lock);
}

static void execute_statement(void) {
  executed++;
  if (is_open()) append_entry();
}

static void *client(void *unused) {
  execute_statement();
  return unused;
}

static void *rotator(void *unused) {
  rotate_log();
  return unused;
}

int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, client, NULL);
  pthread_create(&threads[1], NULL, rotator, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d executed, %d logged\n", executed, binlog.entries);
  assert(binlog.entries == executed);
  return 0;
}

/* A small cache server: worker threads, each with an event loop of its own (libevent), as in memcached. The main
 * thread accepts connections and hands each to a worker through a pipe. Items are looked up under a lock,
 * changed, and stored under the lock again: every access is locked, and still the addition of one client is
 * lost if another one comes in between.
 *
 *   set KEY NUMBER    STORED
 *   add KEY NUMBER    the new value
 *   get KEY           the value
 *   quit              closes the connection
 *
 * usage: server PORT [SWEEPS]: with SWEEPS, each worker goes over its own statistics so often for each request.
 */
#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORKERS = 2, ITEMS = 64, STATISTICS = 16 };

struct item {
  char key[32];
  long value;
};

static struct item items[ITEMS];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

struct worker {
  pthread_t thread;
  struct event_base *base;
  struct event *handover;
  int receive, send; /* the pipe through which connections come */
  long *statistics;  /* nobody else's */
};

struct connection {
  struct worker *worker;
  struct event *event;
  int file;
  size_t length;
  char line[128];
};

static struct worker workers[WORKERS];
static int sweeps;

static struct item *find(const char *key) {
  for (int i = 0; i < ITEMS; i++) {
    if (items[i].key[0] == 0 || strcmp(items[i].key, key) == 0) return &items[i];
  }
  return NULL;
}

static long item_get(const char *key) {
  pthread_mutex_lock(&cache_lock);
  struct item *item = find(key);
  long value = item ? item->value : 0; /* BUG: first */
  pthread_mutex_unlock(&cache_lock);
  return value;
}

static int item_store(const char *key, long value) {
  pthread_mutex_lock(&cache_lock);
  struct item *item = find(key);
  if (item) {
    strcpy(item->key, key); /* at most 31 characters, as `command` reads it */
    item->value = value; /* BUG: write */
  }
  pthread_mutex_unlock(&cache_lock);
  return item != NULL;
}

static long item_add(const char *key, long amount) {
  long value = item_get(key) + amount;
  item_store(key, value);
  return value;
}

static void housekeeping(struct worker *worker) {
  for (int sweep = 0; sweep < sweeps; sweep++) {
    for (int i = 0; i < STATISTICS; i++) worker->statistics[i] += i;
  }
}

static void reply(struct connection *connection, const char *text) {
  size_t length = strlen(text);
  if (write(connection->file, text, length) != (ssize_t)length) perror("write");
}

static void hang_up(struct connection *connection) {
  event_free(connection->event);
  close(connection->file);
  free(connection);
}

/* Says whether the connection goes on. */
static int command(struct connection *connection, char *line) {
  char word[8] = "", key[32] = "", text[32];
  long number = 0;
  int count = sscanf(line, "%7s %31s %ld", word, key, &number);
  housekeeping(connection->worker);
  if (count == 3 && strcmp(word, "set") == 0) {
    reply(connection, item_store(key, number) ? "STORED\n" : "FULL\n");
  } else if (count == 3 && strcmp(word, "add") == 0) {
    snprintf(text, sizeof text, "%ld\n", item_add(key, number));
    reply(connection, text);
  } else if (count == 2 && strcmp(word, "get") == 0) {
    snprintf(text, sizeof text, "%ld\n", item_get(key));
    reply(connection, text);
  } else if (strcmp(word, "quit") == 0) {
    return 0;
  } else {
    reply(connection, "ERROR\n");
  }
  return 1;
}

static void on_data(evutil_socket_t file, short events, void *argument) {
  struct connection *connection = argument;
  char *room = connection->line + connection->length;
  ssize_t got = read(file, room, sizeof connection->line - 1 - connection->length);
  if (got <= 0) {
    hang_up(connection);
    return;
  }
  connection->length += (size_t)got;
  connection->line[connection->length] = 0;
  char *line = connection->line, *end;
  while ((end = strchr(line, '\n')) != NULL) {
    *end = 0;
    if (!command(connection, line)) {
      hang_up(connection);
      return;
    }
    line = end + 1;
  }
  connection->length = strlen(line);
  memmove(connection->line, line, connection->length + 1);
  (void)events;
}

/* A connection is handed over, or, as -1, the news that there will be no more. */
static void on_handover(evutil_socket_t pipe, short events, void *argument) {
  struct worker *worker = argument;
  int file;
  if (read(pipe, &file, sizeof file) != sizeof file || file < 0) {
    event_base_loopbreak(worker->base);
    return;
  }
  struct connection *connection = calloc(1, sizeof *connection);
  connection->worker = worker;
  connection->file = file;
  connection->event = event_new(worker->base, file, EV_READ | EV_PERSIST, on_data, connection);
  event_add(connection->event, NULL);
  (void)events;
}

static void *work(void *argument) {
  struct worker *worker = argument;
  event_base_dispatch(worker->base);
  return NULL;
}

static void hand_over(struct worker *worker, int file) {
  if (write(worker->send, &file, sizeof file) != sizeof file) perror("write");
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t file, struct sockaddr *address,
                          int length, void *argument) {
  static unsigned next;
  hand_over(&workers[next++ % WORKERS], file);
  (void)listener, (void)address, (void)length, (void)argument;
}

static void on_stop(evutil_socket_t signal, short events, void *base) {
  event_base_loopbreak(base);
  (void)signal, (void)events;
}

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: server PORT [SWEEPS]\n");
    return 2;
  }
  sweeps = count > 2 ? atoi(words[2]) : 0;
  item_store("hits", 0);
  for (int i = 0; i < WORKERS; i++) {
    struct worker *worker = &workers[i];
    int ends[2];
    if (pipe(ends) != 0) return 1;
    worker->receive = ends[0];
    worker->send = ends[1];
    worker->statistics = calloc(STATISTICS, sizeof *worker->statistics);
    worker->base = event_base_new();
    worker->handover = event_new(worker->base, ends[0], EV_READ | EV_PERSIST, on_handover, worker);
    event_add(worker->handover, NULL);
    pthread_create(&worker->thread, NULL, work, worker);
  }
  struct event_base *base = event_base_new();
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct evconnlistener *listener =
      evconnlistener_new_bind(base, on_connection, NULL, LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_FREE, 16,
                              (struct sockaddr *)&address, sizeof address);
  if (listener == NULL) {
    perror("bind");
    return 1;
  }
  struct event *stop = evsignal_new(base, SIGTERM, on_stop, base);
  event_add(stop, NULL);
  event_base_dispatch(base);
  for (int i = 0; i < WORKERS; i++) {
    hand_over(&workers[i], -1);
    pthread_join(workers[i].thread, NULL);
  }
  evconnlistener_free(listener);
  printf("hits: %ld\n", item_get("hits"));
  return 0;
}

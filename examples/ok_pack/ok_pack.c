/* Correct: a compressor in the manner of pbzip2: a reader puts blocks into a queue, workers take and
 * compress them, and the output has the blocks in their order. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 2, BLOCK = 8, LARGEST = 512, CAPACITY = 2 };

static unsigned char input[LARGEST * BLOCK];
static unsigned char packed[LARGEST][2 * BLOCK];
static int packed_size[LARGEST];
static int blocks = 3;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int numbers[CAPACITY];
  int first, count, closed;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, 0};

static void put(int block) {
  pthread_mutex_lock(&queue.lock);
  while (queue.count == CAPACITY) pthread_cond_wait(&queue.changed, &queue.lock);
  queue.numbers[(queue.first + queue.count) % CAPACITY] = block;
  queue.count++;
  pthread_cond_broadcast(&queue.changed);
  pthread_mutex_unlock(&queue.lock);
}

static void close_queue(void) {
  pthread_mutex_lock(&queue.lock);
  queue.closed = 1;
  pthread_cond_broadcast(&queue.changed);
  pthread_mutex_unlock(&queue.lock);
}

static int take(void) {
  int block = -1;
  pthread_mutex_lock(&queue.lock);
  while (queue.count == 0 && !queue.closed) pthread_cond_wait(&queue.changed, &queue.lock);
  if (queue.count > 0) {
    block = queue.numbers[queue.first];
    queue.first = (queue.first + 1) % CAPACITY;
    queue.count--;
    pthread_cond_broadcast(&queue.changed);
  }
  pthread_mutex_unlock(&queue.lock);
  return block;
}

static int run_length(const unsigned char *from, unsigned char *to) {
  int size = 0;
  for (int at = 0; at < BLOCK;) {
    int run = 1;
    while (at + run < BLOCK && from[at + run] == from[at]) run++;
    to[size++] = (unsigned char)run;
    to[size++] = from[at];
    at += run;
  }
  return size;
}

static void *worker(void *unused) {
  for (int block = take(); block >= 0; block = take()) {
    packed_size[block] = run_length(input + block * BLOCK, packed[block]);
  }
  return unused;
}

int main(int count, char **arguments) {
  pthread_t threads[WORKERS];
  if (count > 1) blocks = atoi(arguments[1]);
  if (blocks < 1 || blocks > LARGEST) return 2;
  for (int i = 0; i < blocks * BLOCK; i++) input[i] = (unsigned char)('a' + i / 3 % 4);
  for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int block = 0; block < blocks; block++) put(block);
  close_queue();
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  int total = 0;
  unsigned sum = 0;
  for (int block = 0; block < blocks; block++) {
    total += packed_size[block];
    for (int i = 0; i < packed_size[block]; i++) sum = sum * 31 + packed[block][i];
  }
  printf("%d bytes, checksum %u\n", total, sum);
  return 0;
}

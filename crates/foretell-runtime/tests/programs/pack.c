/* Compresses blocks in parallel, as pbzip2 does: a queue of blocks, workers that count, transform
   and run-length encode each, a writer that takes them in order. */
#include <pthread.h>
#include <string.h>

enum { BLOCKS = 6, SIZE = 600, THREADS = 2 };

static unsigned char input[BLOCKS][SIZE], output[BLOCKS][2 * SIZE];
static int sizes[BLOCKS], next, done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Moves each byte to the front of the alphabet when it is met. */
static void to_front(unsigned char *bytes) {
  unsigned char alphabet[32];
  for (int i = 0; i < 32; i++)
    alphabet[i] = i;
  for (int i = 0; i < SIZE; i++) {
    unsigned char byte = bytes[i];
    int place = 0;
    while (alphabet[place] != byte)
      place++;
    bytes[i] = place;
    for (; place > 0; place--)
      alphabet[place] = alphabet[place - 1];
    alphabet[0] = byte;
  }
}

static int run_lengths(const unsigned char *bytes, unsigned char *to) {
  int size = 0;
  for (int i = 0; i < SIZE;) {
    int length = 1;
    while (i + length < SIZE && length < 255 && bytes[i + length] == bytes[i])
      length++;
    to[size++] = bytes[i];
    to[size++] = length;
    i += length;
  }
  return size;
}

static void *worker(void *unused) {
  (void)unused;
  for (;;) {
    pthread_mutex_lock(&lock);
    int mine = next < BLOCKS ? next++ : -1;
    pthread_mutex_unlock(&lock);
    if (mine < 0)
      return 0;
    int counts[32] = {0};
    for (int i = 0; i < SIZE; i++)
      counts[input[mine][i]]++;
    to_front(input[mine]);
    int size = run_lengths(input[mine], output[mine]);
    pthread_mutex_lock(&lock);
    sizes[mine] = size;
    done++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
}

int main(void) {
  pthread_t threads[THREADS];
  unsigned seed = 1;
  for (int block = 0; block < BLOCKS; block++)
    for (int i = 0; i < SIZE; i++) {
      if (i % 8 == 0)
        seed = seed * 1103515245 + 12345;
      input[block][i] = seed >> 16 & 31;
    }
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, worker, 0);
  pthread_mutex_lock(&lock);
  while (done < BLOCKS)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], 0);
  return sizes[0] > 0 ? 0 : 1;
}

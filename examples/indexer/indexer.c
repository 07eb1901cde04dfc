/* The indexer of Flanagan and Godefroid: threads put messages into one hash table and go on to the
 * next slot on a collision. Looking at a slot and taking it are two steps here, so two threads whose
 * messages collide can both find the slot free: a message is overwritten. The recorded run has the
 * collision, not the double look: the bug lies past the path that was recorded. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { SLOTS = 16, THREADS = 2, MESSAGES = 2 };

static int table[SLOTS];
static pthread_mutex_t locks[SLOTS];

static int look(int slot) {
  pthread_mutex_lock(&locks[slot]);
  int found = table[slot]; /* BUG: first */
  pthread_mutex_unlock(&locks[slot]);
  return found;
}

static void take(int slot, int message) {
  pthread_mutex_lock(&locks[slot]);
  table[slot] = message; /* BUG: write */
  pthread_mutex_unlock(&locks[slot]);
}

static void insert(int message) {
  int slot = message * 7 % SLOTS;
  while (look(slot) != 0) slot = (slot + 1) % SLOTS;
  take(slot, message);
}

static void *indexer(void *argument) {
  int number = *(int *)argument;
  for (int i = 0; i < MESSAGES; i++) insert(1 + i + SLOTS * number);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&locks[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, indexer, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  int count = 0;
  for (int i = 0; i < SLOTS; i++) count += table[i] != 0;
  printf("%d messages\n", count);
  assert(count == THREADS * MESSAGES);
  return 0;
}

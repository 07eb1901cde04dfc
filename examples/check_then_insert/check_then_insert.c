/* Two threads register the same name. Both may find it missing and both insert it; in the recorded
 * run the second one finds it, so its insertion is not among the recorded events. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int names[CAPACITY];
static int count;

static int is_registered(int name) {
  pthread_mutex_lock(&lock);
  int found = 0;
  int registered = count; /* BUG: first */
  for (int i = 0; i < registered; i++) found |= names[i] == name;
  pthread_mutex_unlock(&lock);
  return found;
}

static void append(int name) {
  pthread_mutex_lock(&lock);
  names[count] = name;
  count++; /* BUG: write */
  pthread_mutex_unlock(&lock);
}

static void register_name(int name) {
  if (!is_registered(name)) append(name);
}

static void *plugin(void *name) {
  register_name(*(int *)name);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  int name = 17;
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, plugin, &name);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d registered\n", count);
  assert(count == 1);
  return 0;
}

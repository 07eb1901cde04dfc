/* A reference count whose last holder is found by a look and a decrement that are two steps: both
 * holders can see the other's reference, and nobody frees; the leak shows in the program's exit status. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct texture {
  atomic_int holders;
  int pixels;
};

static atomic_int freed;

static struct texture *texture_new(int holders) {
  struct texture *texture = malloc(sizeof *texture);
  atomic_init(&texture->holders, holders);
  texture->pixels = 64;
  return texture;
}

static void texture_release(struct texture *texture) {
  int holders = atomic_load(&texture->holders); /* BUG: first */
  if (holders == 1) {
    free(texture);
    atomic_store(&freed, 1);
    return;
  }
  atomic_fetch_sub(&texture->holders, 1); /* BUG: write */
}

static void *painter(void *texture) {
  texture_release(texture);
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  struct texture *texture = texture_new(2);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, painter, texture);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%d of 1 texture freed\n", atomic_load(&freed));
  return 1 - atomic_load(&freed);
}

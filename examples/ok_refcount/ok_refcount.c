/* Correct: a reference count with C11 atomics; who takes the last reference away frees. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct texture {
  atomic_int holders;
  int pixels;
};

static atomic_int alive, drawn;

static void texture_release(struct texture *texture) {
  if (atomic_fetch_sub(&texture->holders, 1) == 1) {
    free(texture);
    atomic_fetch_sub(&alive, 1);
  }
}

static void *painter(void *argument) {
  struct texture *texture = argument;
  atomic_fetch_add(&drawn, texture->pixels);
  texture_release(texture);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  struct texture *texture = malloc(sizeof *texture);
  atomic_init(&texture->holders, 3);
  texture->pixels = 64;
  atomic_store(&alive, 1);
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, painter, texture);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  printf("%d pixels drawn\n", atomic_load(&drawn));
  assert(atomic_load(&alive) == 0 && atomic_load(&drawn) == 192);
  return 0;
}

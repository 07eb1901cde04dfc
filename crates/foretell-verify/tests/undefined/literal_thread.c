#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int *shared;
static int use(int *a) { return *a; }
static void *f(void *x) {
  { shared = (int[]){1, 2}; use(shared); }
  { int z[2] = {9, 9}; use(z); }
  assert(shared[1] == 2);
  return x;
}
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }

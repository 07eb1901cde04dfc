#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
static void *f(void *x) { pthread_t *p = x; assert(*p == pthread_self()); return 0; }
int main(void) { pthread_t *p = calloc(1, sizeof *p); pthread_create(p, 0, f, p); pthread_join(*p, 0); free(p); return 0; }

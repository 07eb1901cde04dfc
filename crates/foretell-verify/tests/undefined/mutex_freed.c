#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
int main(void) { pthread_mutex_t *m = malloc(sizeof *m); pthread_mutex_init(m, 0); pthread_mutex_lock(m); free(m); assert(1); return 0; }

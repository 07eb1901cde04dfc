#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b;
int main(void) { pthread_mutex_lock(&a); pthread_mutex_unlock(&a); memcpy(&b, &a, sizeof a); assert(pthread_mutex_lock(&b) == 0); return 0; }

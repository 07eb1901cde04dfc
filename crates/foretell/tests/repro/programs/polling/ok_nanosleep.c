/* Correct: how long to sleep is written in every round. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <assert.h>
static atomic_int ready; static int data;
void *w(void *z) { data = 7; atomic_store(&ready, 1); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, w, 0);
 while (!atomic_load(&ready)) { struct timespec ts; ts.tv_sec = 0; ts.tv_nsec = 1000000; nanosleep(&ts, 0); }
 assert(data == 7); pthread_join(t, 0); return 0; }

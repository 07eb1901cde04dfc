// Two threads that are too polite: each waits until the other is done with its turn. They count how often
// they looked, so it is no loop that only waits.
#include <pthread.h>

static volatile int wants[2] = {1, 1};
static volatile long looked[2];

static void *polite(void *argument) {
    long me = (long)argument;
    while (wants[1 - me])
        looked[me]++;
    wants[me] = 0;
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, polite, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return 0;
}

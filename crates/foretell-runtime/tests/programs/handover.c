// One thread waits for a semaphore that the other posts.
#include <pthread.h>
#include <semaphore.h>

static sem_t ready;
static int value;

static void *worker(void *unused) {
    (void)unused;
    sem_wait(&ready);
    value++;
    return 0;
}

int main(void) {
    pthread_t thread;
    sem_init(&ready, 0, 0);
    pthread_create(&thread, 0, worker, 0);
    value = 1;
    sem_post(&ready);
    pthread_join(thread, 0);
    return value == 2 ? 0 : 1;
}

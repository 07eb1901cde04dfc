#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
static int *n;
static void *work(void *p) { __atomic_store_n(n, __atomic_load_n(n, 5) + 1, 5); return p; }
int main(void) { int f = shm_open("/foretell-try", O_RDWR | O_CREAT, 0600); assert(f >= 0); shm_unlink("/foretell-try"); assert(!ftruncate(f, 4096)); n = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  pthread_t a, b; pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0); pthread_join(a, 0); pthread_join(b, 0); assert(*n == 2); return 0; }

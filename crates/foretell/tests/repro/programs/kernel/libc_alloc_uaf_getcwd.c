/* see libc_alloc_uaf_asprintf */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <assert.h>
#include <unistd.h>
#include <errno.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <sys/mman.h>
#include <search.h>
#include <ctype.h>
#include <limits.h>
typedef pthread_mutex_t M; typedef pthread_cond_t C; typedef pthread_t T;
#define MI PTHREAD_MUTEX_INITIALIZER
#define CI PTHREAD_COND_INITIALIZER
#define L(m) pthread_mutex_lock(&(m))
#define U(m) pthread_mutex_unlock(&(m))
#define GO(t,f,a) pthread_create(&(t),0,f,(void*)(intptr_t)(a))
#define J(t) pthread_join(t,0)
#include <dirent.h>
#include <wchar.h>
/* lib-allocated memory (getcwd), freed by another thread, then read under the lock: use after free if w first */
static M m=MI; static char*buf; static unsigned total;
static void *w(void*p){ L(m); free(buf); U(m); return 0; }
int main(){ buf=getcwd(NULL,0); T a; GO(a,w,0); L(m); total+=buf[0]; U(m); J(a); return 0; }

/* reader saw closed==0 and blocks in read; close of the read end by another thread does not wake it (Linux): hangs natively */
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
/* close() of a pipe's read end does not wake a reader that is already blocked: hang if the reader was first */
static int p[2]; static M m=MI; static int closed;
static void *rd(void*x){ usleep(1000); L(m); int c=closed; U(m); if(c) return 0; char b; ssize_t r=read(p[0],&b,1); (void)r; return 0; }
int main(){ pipe(p); T t; GO(t,rd,0); L(m); closed=1; U(m); close(p[0]); J(t); return 0; }

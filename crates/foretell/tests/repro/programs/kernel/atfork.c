/* pthread_atfork handlers that lock and unlock: POSIX's own example */
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
static M m=MI; static int n; static void pre(){ L(m);} static void post(){ U(m);}
static void *w(void*x){ L(m); n++; U(m); return 0; }
int main(){ pthread_atfork(pre,post,post); T a; GO(a,w,0); pid_t p=fork(); if(p==0){ L(m); U(m); _exit(0);} int st; waitpid(p,&st,0); assert(WIFEXITED(st)); J(a); return 0; }

/* EXPECTED: 10/12: write() reads a freed buffer
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: fwrite / write of a buffer freed by another thread */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
static char*b; static int fd; static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER;
static void *w(void*p){ pthread_mutex_lock(&m); char*x=b; pthread_mutex_unlock(&m); if(x) if(write(fd,x,4)!=4) abort(); return 0; }
static void *f(void*p){ pthread_mutex_lock(&m); char*x=b; b=0; pthread_mutex_unlock(&m); free(x); return 0; }
int main(){ fd=open("/dev/null",O_WRONLY); b=calloc(1,4); pthread_t a,c; pthread_create(&a,0,w,0); pthread_create(&c,0,f,0); pthread_join(a,0); pthread_join(c,0); return 0; }

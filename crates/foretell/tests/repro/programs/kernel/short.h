/* Short names for what these programs use. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
typedef pthread_mutex_t M; typedef pthread_cond_t C; typedef pthread_t T;
#define MI PTHREAD_MUTEX_INITIALIZER
#define CI PTHREAD_COND_INITIALIZER
#define L(m) pthread_mutex_lock(&(m))
#define U(m) pthread_mutex_unlock(&(m))
#define GO(t,f,a) pthread_create(&(t),0,f,(void*)(intptr_t)(a))
#define J(t) pthread_join(t,0)

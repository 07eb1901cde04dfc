#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
static int fd, value;
static void *work(void *p) { uint64_t one = 1; value = 7; assert(write(fd, &one, 8) == 8); return p; }
int main(void) { pthread_t t; fd = eventfd(0, 0); int e = epoll_create1(0); struct epoll_event v = {.events = EPOLLIN}, got; epoll_ctl(e, EPOLL_CTL_ADD, fd, &v);
  pthread_create(&t, 0, work, 0); int n = epoll_wait(e, &got, 1, -1); assert(n == 1); uint64_t c; assert(read(fd, &c, 8) == 8); assert(value == 7); pthread_join(t, 0); return 0; }

/* sem_post at INT_MAX is EOVERFLOW if it comes before sem_wait; fails natively */
#include "short.h"
static sem_t s; static void *w(void*x){ usleep(1000); int r=sem_post(&s); assert(r==0); return 0; }
int main(){ sem_init(&s,0,INT_MAX); T t; GO(t,w,0); sem_wait(&s); J(t); return 0; }

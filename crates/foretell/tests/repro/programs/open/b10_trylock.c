/* EXPECTED: 10: sum 2 or 3 and exit status 1 reachable (seen with record --schedule random:1:1)
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: trylock fails -> item is silently dropped */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int sum;
static void *t(void*p){ for(int i=0;i<2;i++) if(pthread_mutex_trylock(&m)==0){ sum++; pthread_mutex_unlock(&m);} return 0; }
int main(){ pthread_t a,b; pthread_create(&a,0,t,0); pthread_create(&b,0,t,0); pthread_join(a,0); pthread_join(b,0); printf("sum %d\n",sum); return sum==4?0:1; }

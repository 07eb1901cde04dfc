/* EXPECTED: 10/12: heap write past the end
   GOT: exit 0, nothing found; all behaviours of this input were covered */
/* BUG: index checked then used; the other increments -> out of bounds */
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int idx=3; static char *tab;
static int room(void){ pthread_mutex_lock(&m); int r=idx<4; pthread_mutex_unlock(&m); return r; }
static void *t(void*p){ if(room()){ pthread_mutex_lock(&m); tab[idx++]=1; pthread_mutex_unlock(&m);} return 0; }
int main(){ tab=malloc(4); pthread_t a,b; pthread_create(&a,0,t,0); pthread_create(&b,0,t,0); pthread_join(a,0); pthread_join(b,0); free(tab); return 0; }

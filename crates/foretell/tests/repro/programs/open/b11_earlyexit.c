/* EXPECTED: not 0: main returns first, 'done' is never printed
   GOT: exit 0, nothing found; all behaviours of this input were covered (1 interleaving) */
/* BUG: main returns without join; worker's result may be missing ("done" not printed) */
#include <pthread.h>
#include <stdio.h>
static void *t(void*p){ printf("done\n"); return 0; }
int main(){ pthread_t a; pthread_create(&a,0,t,0); printf("main ends\n"); return 0; }

/* both threads see open_==1, both fclose: double free (ASan shows it natively). fgets after fclose is correctly 12 */
#include "short.h"
static M m=MI; static FILE*f; static int open_=1;
static void *w(void*p){ L(m); int o=open_; U(m); if(o){ L(m); open_=0; fclose(f); U(m);} return 0; }
int main(){ f=fopen("/dev/null","w"); T a; GO(a,w,0); w(0); J(a); return 0; }

/* what the C library keeps is freed after its last use; an alarm without a handler is a limit of time */
#include "short.h"
static M m=MI; static FILE*f; static int n;
static void *w(void*p){ L(m); n++; fputs("hello",f); U(m); return 0; }
int main(){
  alarm(60);
  f=fopen("/dev/null","w"); char*b=malloc(1024); setvbuf(f,b,_IOFBF,1024);
  char*e=strdup("FOO=1"); putenv(e);
  T a; GO(a,w,0); L(m); n++; U(m); J(a);
  fclose(f); free(b);
  int found=getenv("FOO")!=0; unsetenv("FOO"); free(e);
  sem_t*s=sem_open("/fkeptok",O_CREAT,0600,1); sem_unlink("/fkeptok"); sem_wait(s); sem_post(s); sem_close(s);
  assert(found && n==2);
  return 0;
}

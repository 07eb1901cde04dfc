#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <errno.h>
#include <unistd.h>
#ifdef RUN // to see it fail: gcc -DRUN
int __VERIFIER_nondet_int(void){return 41;}
unsigned char __VERIFIER_nondet_uchar(void){return 200;}
long __VERIFIER_nondet_long(void){return -1L;}
short __VERIFIER_nondet_short(void){return -300;}
_Bool __VERIFIER_nondet_bool(void){return 1;}
unsigned __VERIFIER_nondet_uint(void){return 4000000000u;}
#else
int __VERIFIER_nondet_int(void);
unsigned char __VERIFIER_nondet_uchar(void);
long __VERIFIER_nondet_long(void);
short __VERIFIER_nondet_short(void);
_Bool __VERIFIER_nondet_bool(void);
unsigned __VERIFIER_nondet_uint(void);
#endif

int main(void) {
int x=__VERIFIER_nondet_int(); assert((x&1)==0||(x|8)!=41);
return 0; }

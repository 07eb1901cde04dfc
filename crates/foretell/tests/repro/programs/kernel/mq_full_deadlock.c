/* producer first: queue of one message is full, mq_send blocks with m held; hangs natively */
#include "short.h"
static mqd_t q; static M m=MI; static int n;
static void *prod(void*x){ for(int i=0;i<2;i++){ L(m); n++; mq_send(q,"m",1,0); U(m);} return 0; }
int main(){ struct mq_attr a={.mq_maxmsg=1,.mq_msgsize=8}; mq_unlink("/fown7"); q=mq_open("/fown7",O_CREAT|O_RDWR,0600,&a); if(q==(mqd_t)-1) return 0; mq_unlink("/fown7"); T t; GO(t,prod,0); char b[8]; for(int i=0;i<2;i++){ L(m); n++; U(m); mq_receive(q,b,8,0);} J(t); return 0; }

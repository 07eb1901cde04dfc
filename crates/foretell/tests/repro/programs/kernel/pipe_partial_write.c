/* O_NONBLOCK pipe, late reader: partial write / EAGAIN; fails natively */
#include "short.h"
/* nonblocking writer, partial write not handled: 100 KB into a 64 KB pipe */
static int p[2]; static char b[100000]; static void *wr(void*x){ size_t o=0; while(o<sizeof b){ ssize_t r=write(p[1],b+o,sizeof b-o>50000?50000:sizeof b-o); assert(r==50000); o+=r; usleep(1000);} close(p[1]); return 0; }
int main(){ pipe(p); fcntl(p[1],F_SETFL,O_NONBLOCK); T t; GO(t,wr,0); static char c[100000]; size_t g=0; ssize_t r; while((r=read(p[0],c,sizeof c))>0) g+=r; assert(g==sizeof b); J(t); return 0; }

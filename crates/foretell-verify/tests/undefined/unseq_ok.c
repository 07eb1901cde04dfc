#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <pthread.h>
#include <stdint.h>
struct q { int head; int buf[4]; } q;
static void put(struct q *q, int v) { q->buf[q->head++] = v; }
static int d(int a, int b) { return a - b; }
int a[3];
int main(void) { int i = 0, *p = a; put(&q, 3); put(&q, 4); *p++ = i++; a[i] = i; assert(d(a[0], a[1]++) == -1);
  int x = d(q.buf[0], q.buf[1]) + (a[2] = 3) + a[1]; assert(x == 4); return 0; }

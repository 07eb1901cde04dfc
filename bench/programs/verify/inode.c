/* An inode is allocated under two mutexes. Safe. */
#include <assert.h>
#include <pthread.h>

extern void abort(void);
extern int __VERIFIER_nondet_int(void);
extern unsigned __VERIFIER_nondet_uint(void);
extern _Bool __VERIFIER_nondet_bool(void);
extern void __VERIFIER_assume(int);
extern void __VERIFIER_atomic_begin(void);
extern void __VERIFIER_atomic_end(void);
void reach_error(void) { assert(0); }
void __VERIFIER_assert(int holds) { if (!holds) { reach_error(); abort(); } }
void assume_abort_if_not(int holds) { if (!holds) abort(); }
int block, busy, inode;
pthread_mutex_t m_inode, m_busy;
void *allocator(void *arg) {
  pthread_mutex_lock(&m_inode);
  if (inode == 0) {
    pthread_mutex_lock(&m_busy); busy = 1; pthread_mutex_unlock(&m_busy);
    inode = 1;
  }
  block = 1;
  __VERIFIER_assert(block == 1);
  pthread_mutex_unlock(&m_inode);
  return NULL;
}
void *deallocator(void *arg) {
  pthread_mutex_lock(&m_busy);
  if (busy == 0) { block = 0; __VERIFIER_assert(block == 0); }
  pthread_mutex_unlock(&m_busy);
  return ((void *)0);
}
int main(void) {
  pthread_t t1, t2;
  __VERIFIER_assume(inode == busy);
  pthread_mutex_init(&m_inode, 0);
  pthread_mutex_init(&m_busy, 0);
  pthread_create(&t1, 0, allocator, 0);
  pthread_create(&t2, 0, deallocator, 0);
  pthread_join(t1, 0); pthread_join(t2, 0);
  pthread_mutex_destroy(&m_inode); pthread_mutex_destroy(&m_busy);
  return 0;
}

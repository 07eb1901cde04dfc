/* The file system of Flanagan and Godefroid: threads take a free block for their inode. Blocks are few, so that few threads
   collide: of N + 1, if that is even, else none do. N is its size. */
#include <pthread.h>
#include "explored.h"

enum { BLOCKS = N + 1, INODES = N };
static pthread_mutex_t inode_locks[INODES], block_locks[BLOCKS];
static int inodes[INODES], busy[BLOCKS];

static void *work(void *argument) {
  long me = (long)argument % INODES;
  pthread_mutex_lock(&inode_locks[me]);
  if (inodes[me] == 0) {
    long block = me * 2 % BLOCKS;
    for (;;) {
      pthread_mutex_lock(&block_locks[block]);
      if (!busy[block]) {
        busy[block] = 1;
        inodes[me] = (int)block + 1;
        pthread_mutex_unlock(&block_locks[block]);
        break;
      }
      pthread_mutex_unlock(&block_locks[block]);
      block = (block + 1) % BLOCKS;
    }
  }
  pthread_mutex_unlock(&inode_locks[me]);
  return NULL;
}

int main(void) {
  for (int i = 0; i < INODES; i++) pthread_mutex_init(&inode_locks[i], NULL);
  for (int i = 0; i < BLOCKS; i++) pthread_mutex_init(&block_locks[i], NULL);
  pthread_t threads[N];
  for (int i = 0; i < N; i++) pthread_create(&threads[i], NULL, work, (void *)(long)i);
  for (int i = 0; i < N; i++) pthread_join(threads[i], NULL);
  int used = 0;
  for (int i = 0; i < BLOCKS; i++) used += busy[i];
  END_STATE(used);
  return 0;
}

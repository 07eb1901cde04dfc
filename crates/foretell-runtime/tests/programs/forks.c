/* A process with threads forks; the child uses locks and a thread of its own. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds;

static void *worker(void *unused) {
  (void)unused;
  for (int i = 0; i < 50; i++) {
    pthread_mutex_lock(&lock);
    rounds++;
    pthread_mutex_unlock(&lock);
  }
  return 0;
}

int main(void) {
  pthread_t thread, other;
  int status = 0;
  pthread_create(&thread, 0, worker, 0);
  pthread_mutex_lock(&lock); /* so the child has it, too */
  pid_t child = fork();
  if (child == 0) {
    rounds = 0;
    pthread_mutex_unlock(&lock);
    pthread_create(&other, 0, worker, 0);
    pthread_join(other, 0);
    _exit(rounds == 50 ? 7 : 8);
  }
  pthread_mutex_unlock(&lock);
  if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
    return 1;
  pthread_join(thread, 0);
  return rounds == 50 ? 0 : 2;
}

/* Ends in the way that its argument names, after a few events of two threads. */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *worker(void *argument) {
  pthread_mutex_lock(&lock);
  shared++;
  pthread_mutex_unlock(&lock);
  return argument;
}

int main(int count, char **words) {
  const char *way = count > 1 ? words[1] : "";
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
  pthread_join(thread, NULL);
  printf("before %d\n", shared);
  fflush(stdout);
  if (!strcmp(way, "abort"))
    abort();
  if (!strcmp(way, "assert"))
    assert(shared == 2);
  if (!strcmp(way, "segv"))
    *(volatile int *)(long)(shared - 1) = 1;
  if (!strcmp(way, "raise"))
    raise(SIGSEGV);
  if (!strcmp(way, "kill"))
    kill(getpid(), SIGKILL);
  if (!strcmp(way, "_exit"))
    _exit(7);
  if (!strcmp(way, "spin"))
    for (volatile int forever = 1; forever;)
      ;
  if (!strcmp(way, "exec"))
    execlp("sh", "sh", "-c", "echo from sh ${FORETELL_MODE-clean} ${LD_PRELOAD-clean}; exit 9", NULL);
  if (!strcmp(way, "fork")) {
    pid_t child = fork();
    if (child == 0) {
      worker(NULL);
      printf("child %d\n", shared);
      exit(5);
    }
    int status;
    waitpid(child, &status, 0);
    printf("parent %d %d\n", shared, WEXITSTATUS(status));
  }
  if (!strcmp(way, "handler")) {
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
  }
  return 6;
}

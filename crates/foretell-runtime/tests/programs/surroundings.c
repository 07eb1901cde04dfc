/* Prints what a process finds around itself: what it was given, and what is open. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;
#ifdef EARLY
int early(void);
#endif

int main(int count, char **words) {
  char line[200];
  int variables = 0;
  struct stat status;
  struct rlimit limit;
#ifdef EARLY
  printf("early %d\n", early());
#endif
  while (environ[variables]) printf("%p %s\n", (void *)environ[variables], environ[variables]), variables++;
  for (int i = 0; i < count; i++) printf("%p %s\n", (void *)words[i], words[i]);
  printf("%p %p %p\n", (void *)line, (void *)main, malloc(10));
  printf("%s\n", getcwd(line, sizeof line));
  for (int f = 0; f < 32; f++)
    if (!fstat(f, &status)) printf("open %d %o\n", f, (unsigned)status.st_mode & S_IFMT);
  printf("group %d leader %d\n", getpgrp() == getpid(), getsid(0) == getpid());
  for (int r = 0; r < 15; r++)
    if (r != RLIMIT_RTTIME && !getrlimit(r, &limit)) printf("%d %lx %lx\n", r, limit.rlim_cur, limit.rlim_max);
  while (fgets(line, sizeof line, stdin)) printf("read %s", line);
  return 3;
}

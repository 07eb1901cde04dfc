/* One thread reads from a pipe that another one fills: the read must not keep the turn. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];

static void *reader(void *argument) {
  char letter;
  while (read(ends[0], &letter, 1) == 1)
    putchar(letter);
  return argument;
}

int main(void) {
  pthread_t thread;
  if (pipe(ends))
    return 1;
  pthread_create(&thread, NULL, reader, NULL);
  for (const char *text = "piped\n"; *text; text++) {
    usleep(100);
    if (write(ends[1], text, 1) != 1)
      return 1;
  }
  close(ends[1]);
  pthread_join(thread, NULL);
  return 0;
}

/* Threads that wait for pipes and sockets which other threads of the program fill. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static int numbers[2], lines[2], pair[2], polled[2], selected[2], epolled[2];
static int sum, letters, failures;

#define MUST(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      failures++;                                                                                  \
      fprintf(stderr, "failed: %s\n", #condition);                                                 \
    }                                                                                              \
  } while (0)

static void *reader(void *unused) {
  (void)unused;
  char byte;
  while (read(numbers[0], &byte, 1) == 1)
    sum += byte;
  return 0;
}

static void *line_reader(void *unused) {
  (void)unused;
  char line[100];
  FILE *stream = fdopen(lines[0], "r");
  while (fgets(line, sizeof line, stream))
    letters += (int)strlen(line);
  fclose(stream);
  return 0;
}

static void *looker(void *unused) {
  (void)unused;
  struct pollfd file = {polled[0], POLLIN, 0};
  MUST(poll(&file, 1, -1) == 1 && file.revents == POLLIN);
  MUST(read(polled[0], &file, 1) == 1);
  file = (struct pollfd){polled[0], POLLIN, 0};
  MUST(poll(&file, 1, 3600 * 1000) == 0); /* an hour, in virtual time */

  fd_set set;
  FD_ZERO(&set);
  FD_SET(selected[0], &set);
  MUST(select(selected[0] + 1, &set, 0, 0, 0) == 1 && FD_ISSET(selected[0], &set));

  struct epoll_event event = {.events = EPOLLIN};
  int many = epoll_create1(0);
  MUST(epoll_ctl(many, EPOLL_CTL_ADD, epolled[0], &event) == 0);
  MUST(epoll_wait(many, &event, 1, -1) == 1);
  close(many);
  return 0;
}

static void *answerer(void *unused) {
  (void)unused;
  char question[16];
  ssize_t length;
  while ((length = recv(pair[1], question, sizeof question, 0)) > 0)
    MUST(send(pair[1], question, length, 0) == length);
  return 0;
}

int main(void) {
  pthread_t threads[4];
  void *(*routines[4])(void *) = {reader, line_reader, looker, answerer};
  MUST(pipe(numbers) == 0 && pipe(lines) == 0 && pipe(polled) == 0);
  MUST(pipe(selected) == 0 && pipe(epolled) == 0);
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, routines[i], 0);
  for (char byte = 1; byte <= 10; byte++)
    MUST(write(numbers[1], &byte, 1) == 1);
  MUST(write(lines[1], "one\ntwo\n", 8) == 8);
  MUST(write(polled[1], "x", 1) == 1);
  MUST(write(selected[1], "x", 1) == 1);
  char answer[3];
  MUST(send(pair[0], "why", 3, 0) == 3);
  MUST(recv(pair[0], answer, 3, 0) == 3 && memcmp(answer, "why", 3) == 0);
  MUST(write(epolled[1], "x", 1) == 1);
  int waits = fcntl(numbers[0], F_GETFL);
  int nowhere[2];
  MUST(pipe2(nowhere, O_NONBLOCK) == 0);
  MUST(read(nowhere[0], answer, 1) == -1 && errno == EAGAIN && !(waits & O_NONBLOCK));
  close(numbers[1]);
  close(lines[1]);
  shutdown(pair[0], SHUT_WR);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  MUST(sum == 55 && letters == 8);
  return failures;
}

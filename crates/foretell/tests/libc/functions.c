/* Every function of the table in foretell-abi/src/summaries.rs, on memory that two threads write. The first argument
   says which; with a second one the writes are ordered. In the other order than that of the recorded run the
   assertion fails, and nothing but the function's own accesses tells. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static union {
  char text[128];
  long number;
  struct tm time;
} shared;
static char *const text = shared.text;
static char *end, *line;
static char kept_room[128];
static int scanned;
static size_t room;
static struct tm *kept;
static char *kept_text;
static const time_t early = 0, late = 40000000;
static const struct tm first_day = {.tm_mday = 1, .tm_year = 1}, other_day = {.tm_mday = 1, .tm_year = 70};
static const int pair[] = {1, 2};
static int unlike(const void *one, const void *two) { return *(const int *)one != *(const int *)two; }
static int which, ordered;
static const char stream_text[] = "2 fast\n";

static FILE *stream(void) { return fmemopen((void *)stream_text, sizeof stream_text - 1, "r"); }

/* FIRST and SECOND are what the threads do to the memory, in this order in the recorded run; HOLDS must hold then. */
#define READS(name, holds) CASE(name, text[0] = '1', text[0] = '2', holds)
#define WRITES(name, write, holds) CASE(name, text[0] = '1', write, holds)
#define TIMES(name, holds) CASE(name, shared.time.tm_year = 1, shared.time.tm_year = 70, holds)
#define CASES                                                                                                          \
  READS(a64l, a64l(text) == a64l(other))                                                                               \
  READS(asprintf, asprintf(&line, "%s", text) > 0 && line[0] == '2')                                                   \
  CASE(lfind, shared.number = 1, shared.number = 2, lfind(&pair[1], pair, (size_t *)&shared.number, sizeof(int), unlike))\
  READS(fnmatch, fnmatch("2*", text, 0) == 0)                                                                          \
  READS(sscanf, sscanf(text, "%d", &scanned) == 1 && scanned == 2)                                                     \
  READS(strtoimax, strtoimax(text, &end, 10) == 2)                                                                     \
  READS(strtoumax, strtoumax(text, &end, 10) == 2)                                                                     \
  READS(strverscmp, strverscmp(text, other) == 0)                                                                      \
  READS(strxfrm, strxfrm(kept_room, text, sizeof kept_room) > 0 && kept_room[0] == '2')                                \
  READS(swab, (swab(text, kept_room, 2), kept_room[1] == '2'))                                                         \
  READS(atof, atof(text) == 2.0)                                                                                       \
  READS(atoi, atoi(text) == 2)                                                                                         \
  READS(atol, atol(text) == 2)                                                                                         \
  READS(atoll, atoll(text) == 2)                                                                                       \
  READS(bcmp, bcmp(text, other, count) == 0)                                                                           \
  READS(inet_addr, inet_addr(text) == htonl(2))                                                                        \
  READS(memchr, memchr(text, '2', count) != 0)                                                                         \
  READS(memcmp, memcmp(text, other, count) == 0)                                                                       \
  READS(memmem, memmem(text, count, "2", 1) != 0)                                                                      \
  READS(memrchr, memrchr(text, '2', count) != 0)                                                                       \
  READS(strcasecmp, strcasecmp(text, other) == 0)                                                                      \
  READS(strcasestr, strcasestr(text, two) != 0)                                                                        \
  READS(strchr, strchr(text, two[0]) != 0)                                                                             \
  READS(strchrnul, *strchrnul(text, two[0]) == '2')                                                                    \
  READS(strcmp, strcmp(text, other) == 0)                                                                              \
  READS(strcoll, strcoll(text, other) == 0)                                                                            \
  READS(strcspn, strcspn(text, two) == 0)                                                                              \
  READS(strncasecmp, strncasecmp(text, other, count) == 0)                                                             \
  READS(strncmp, strncmp(text, other, count) == 0)                                                                     \
  READS(strpbrk, strpbrk(text, two) != 0)                                                                              \
  READS(strrchr, strrchr(text, two[0]) != 0)                                                                           \
  READS(strspn, strspn(text, two) == 1)                                                                                \
  READS(strstr, strstr(text, two) != 0)                                                                                \
  READS(strtod, strtod(text, &end) == 2.0)                                                                             \
  READS(strtof, strtof(text, &end) == 2.0f)                                                                            \
  READS(strtol, strtol(text, &end, base) == 2)                                                                         \
  READS(strtoll, strtoll(text, 0, base) == 2)                                                                          \
  READS(strtoul, strtoul(text, &end, base) == 2)                                                                       \
  READS(strtoull, strtoull(text, 0, base) == 2)                                                                        \
  READS(inet_pton, inet_pton(AF_INET, (text[1] = 0, strcat(text, ".0.0.1")), &address) == 1 && address == htonl(33554433)) \
  READS(inet_ntop, (inet_ntop(AF_INET, text, local, sizeof local), local[1] == '0'))                                   \
  READS(snprintf_of_text, (snprintf(local, sizeof local, "%d %s", 7, text), local[2] == '2'))                          \
  READS(sprintf_of_text, (sprintf(local, "%.*s", (int)count, text), local[0] == '2'))                                  \
  READS(strtok_r, *strtok_r(text, two, &end) == 'x')                                                                    \
  READS(strsep, (end = text, *strsep(&end, two) == 0))                                                                 \
  CASE(strlen, text[1] = 0, text[1] = 'x', strlen(text) == count)                                                      \
  CASE(strnlen, text[1] = 0, text[1] = 'x', strnlen(text, 100) == count)                                               \
  CASE(ctime_r, shared.number = 0, shared.number = 40000000, ctime_r(&shared.number, local)[23] == '1')                \
  CASE(ctime, (void)ctime(&early), kept_text = ctime(&late), kept_text[23] == '1')                                      \
  CASE(asctime, (void)asctime(&first_day), kept_text = asctime(&other_day), kept_text[22] == '7')                       \
  CASE(gmtime, (void)gmtime(&early), kept = gmtime(&late), kept->tm_year == 71)                                         \
  CASE(localtime, (void)localtime(&early), kept = localtime(&late), kept->tm_year == 71)                                \
  CASE(gmtime_r, shared.number = 0, shared.number = 40000000, gmtime_r(&shared.number, &broken)->tm_year == 71)        \
  CASE(localtime_r, shared.number = 0, shared.number = 40000000, localtime_r(&shared.number, &broken)->tm_year == 71)  \
  TIMES(asctime_r, asctime_r(&shared.time, local)[22] == '7')                                                          \
  TIMES(mktime, mktime(&shared.time) >= -100000)                                                                       \
  TIMES(strftime, strftime(local, sizeof local, "%Y", &shared.time) == 4 && local[2] == '7')                           \
  TIMES(timegm, timegm(&shared.time) >= -100000)                                                                       \
  WRITES(bzero, bzero(text, 1), text[0] == 0)                                                                          \
  WRITES(explicit_bzero, explicit_bzero(text, 1), text[0] == 0)                                                        \
  WRITES(fgets, fgets(text, 100, stream()), text[0] == '2')                                                            \
  WRITES(fread, fread(text, 1, 3, stream()), text[0] == '2')                                                           \
  WRITES(getline, (line = text, room = sizeof shared, getline(&line, &room, stream())), text[0] == '2')                \
  WRITES(getdelim, (line = text, room = sizeof shared, getdelim(&line, &room, ' ', stream())), text[0] == '2')         \
  WRITES(gethostname, gethostname(text, sizeof shared), text[0] != '1')                                                \
  WRITES(inet_aton, inet_aton("50.0.0.1", (struct in_addr *)text), text[0] == '2')                                     \
  WRITES(snprintf, snprintf(text, 9, "%d", 2), text[0] == '2')                                                         \
  WRITES(sprintf, sprintf(text, "%d", (int)count), text[0] == '2')                                                     \
  WRITES(stpcpy, stpcpy(text, other), text[0] == '2')                                                                  \
  WRITES(stpncpy, stpncpy(text, other, count), text[0] == '2')                                                         \
  WRITES(strcat, (text[0] = 0, strcat(text, other)), text[0] == '2')                                                   \
  WRITES(strcpy, strcpy(text, other), text[0] == '2')                                                                  \
  WRITES(strncat, (text[0] = 0, strncat(text, other, count)), text[0] == '2')                                          \
  WRITES(strncpy, strncpy(text, other, count), text[0] == '2')

#define CASE(name, first, second, holds) name##_case,
enum { CASES };
#undef CASE
#define CASE(name, first, second, holds) #name,
static const char *const names[] = {CASES};
#undef CASE

/* What the compiler must not know. */
static volatile size_t count = 2;
static volatile int base = 10;
static char other[] = "2x", two[] = "2";

static void act(int turn) {
  pthread_mutex_lock(&mutex);
  switch (which * 2 + turn) {
#define CASE(name, first, second, holds)                                                                               \
  case name##_case * 2:                                                                                                \
    (void)(first);                                                                                                     \
    break;                                                                                                             \
  case name##_case * 2 + 1:                                                                                            \
    (void)(second);                                                                                                    \
    break;
    CASES
#undef CASE
  }
  pthread_mutex_unlock(&mutex);
}

static void *thread(void *unused) {
  act(!ordered);
  return unused;
}

int main(int argc, char **argv) {
  assert(argc > 1);
  which = -1;
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
    if (!strcmp(names[i], argv[1])) which = i;
  if (which < 0) return 3;
  ordered = argc > 2;
  if (which >= asctime_r_case && which <= timegm_case) shared.time.tm_mday = 1;
  else strcpy(text, "0x");
  if (!strcmp(argv[1], "inet_addr")) text[1] = 0;
  char local[64];
  struct tm broken;
  in_addr_t address = 0;
  (void)local, (void)broken, (void)address;
  pthread_t other_thread;
  pthread_create(&other_thread, 0, thread, 0);
  if (ordered) pthread_join(other_thread, 0);
  act(ordered);
  if (!ordered) pthread_join(other_thread, 0);
  switch (which) {
#define CASE(name, first, second, holds)                                                                               \
  case name##_case:                                                                                                    \
    assert(holds);                                                                                                     \
    break;
    CASES
  }
  return 0;
}

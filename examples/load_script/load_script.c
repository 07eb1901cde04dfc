/* Mozilla's script loader (nsXULDocument): the loader notes the current script and starts the load;
 * when a load completes, the script that is current then is compiled and forgotten. Each step is
 * locked. Between the loader's two steps the other load completes: there is no current script. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct script {
  const char *name;
  int length;
};

static struct script *current_script;
static pthread_mutex_t document = PTHREAD_MUTEX_INITIALIZER;
static int compiled;

static void set_current(struct script *script) {
  pthread_mutex_lock(&document);
  current_script = script; /* BUG: first */
  pthread_mutex_unlock(&document);
}

static void compile_current(void) {
  pthread_mutex_lock(&document);
  compiled += current_script->length; /* BUG: second */
  pthread_mutex_unlock(&document);
}

static void load(struct script *script) {
  set_current(script);
  compile_current();
}

static void *loader(void *script) {
  load(script);
  return NULL;
}

static void *completion(void *unused) {
  set_current(NULL);
  return unused;
}

int main(void) {
  struct script overlay = {"overlay.js", 120};
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, loader, &overlay);
  pthread_create(&threads[1], NULL, completion, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%s: %d bytes compiled\n", overlay.name, compiled);
  return 0;
}

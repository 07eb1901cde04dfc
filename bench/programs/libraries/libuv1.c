// Work on the thread pool of libuv, its results on the loop, and a message from another thread.
#include <assert.h>
#include <uv.h>
static int done, sent;
static uv_async_t async;
static void work(uv_work_t *request) { *(int *)request->data *= 2; }
static void after(uv_work_t *request, int status) { (void)request; assert(status == 0); done++; }
static void on_async(uv_async_t *handle) { sent = 1; uv_close((uv_handle_t *)handle, 0); }
static void sender(void *arg) { (void)arg; uv_async_send(&async); }
int main(void) {
  int values[2] = {1, 2};
  uv_work_t requests[2];
  uv_async_init(uv_default_loop(), &async, on_async);
  for (int i = 0; i < 2; i++) {
    requests[i].data = &values[i];
    uv_queue_work(uv_default_loop(), &requests[i], work, after);
  }
  uv_thread_t thread;
  uv_thread_create(&thread, sender, 0);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  uv_thread_join(&thread);
  assert(done == 2 && sent == 1 && values[0] == 2 && values[1] == 4);
}

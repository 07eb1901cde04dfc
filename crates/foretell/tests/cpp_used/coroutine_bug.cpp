#include <cassert>
#include <coroutine>
#include <mutex>
#include <thread>
std::mutex m; int n = 0;
struct Task { struct promise_type { Task get_return_object() { return {}; } std::suspend_never initial_suspend() { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; } void return_void() {} void unhandled_exception() {} }; };
struct Other { std::thread &t; bool await_ready() { return false; } void await_suspend(std::coroutine_handle<> h) { std::thread &mine = t; mine = std::thread([h] { h.resume(); }); } void await_resume() {} };
int get() { std::lock_guard g(m); return n; }
void set(int v) { std::lock_guard g(m); n = v; }
Task run(std::thread &t) { set(get() + 1); co_await Other{t}; set(get() + 1); }
int main() { std::thread t; run(t); set(get() + 1); t.join(); assert(get() == 3); }

#include <cassert>
#include <coroutine>
#include <mutex>
#include <thread>
std::mutex m; int n = 0;
struct Task { struct promise_type { Task get_return_object() { return {}; } std::suspend_never initial_suspend() { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; } void return_void() {} void unhandled_exception() {} }; };
struct Other { std::thread &t; bool await_ready() { return false; } void await_suspend(std::coroutine_handle<> h) { std::thread &mine = t; mine = std::thread([h] { h.resume(); }); } void await_resume() {} };
void add() { std::lock_guard g(m); n++; }
Task run(std::thread &t) { add(); co_await Other{t}; add(); }
int main() { std::thread t; run(t); add(); t.join(); assert(n == 3); }

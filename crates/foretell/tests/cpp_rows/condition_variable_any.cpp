#include <condition_variable>
#include <mutex>
#include <thread>
#include <cassert>
std::mutex m; std::condition_variable_any c; bool r;
int main() { std::thread t([] { std::lock_guard g(m); r = true; c.notify_one(); }); std::unique_lock l(m); c.wait(l, [] { return r; }); l.unlock(); t.join(); }

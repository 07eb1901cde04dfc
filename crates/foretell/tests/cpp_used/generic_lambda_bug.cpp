// A generic lambda that updates a counter without a lock for one of its types.
#include <cassert>
#include <mutex>
#include <thread>
#include <type_traits>
struct Stats { long ints = 0, doubles = 0; std::mutex m; };
int main() {
  Stats s;
  auto note = [&s](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) { std::scoped_lock l(s.m); s.ints += value; }
    else s.doubles += (long)value;
  };
  std::thread a([&] { note(1); note(2.0); });
  std::thread b([&] { note(3); note(4.0); });
  a.join(); b.join();
  assert(s.ints == 4);
  assert(s.doubles == 6);
}

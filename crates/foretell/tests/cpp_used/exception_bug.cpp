#include <cassert>
#include <exception>
#include <future>
#include <stdexcept>
#include <mutex>
std::mutex m; int stock = 1;
int look() { std::lock_guard g(m); return stock; }
void take() { std::lock_guard g(m); if (stock == 0) throw std::runtime_error("empty"); --stock; }
int main() {
  auto f = std::async(std::launch::async, [] { if (look() > 0) take(); });
  if (look() > 0) take();
  f.get();
}

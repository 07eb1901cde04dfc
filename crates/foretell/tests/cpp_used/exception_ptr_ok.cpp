// Exceptions in worker threads are kept as exception_ptr and thrown again.
#include <cassert>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
int main() {
  std::vector<std::exception_ptr> errors;
  std::mutex m;
  auto work = [&](int n) {
    try { if (n == 1) throw std::runtime_error("number one"); if (n == 2) throw std::out_of_range("two"); }
    catch (...) { std::lock_guard l(m); errors.push_back(std::current_exception()); }
  };
  std::thread a(work, 1), b(work, 2);
  a.join(); b.join();
  int runtime = 0, range = 0;
  for (auto &e : errors) {
    try { std::rethrow_exception(e); }
    catch (const std::out_of_range &) { range++; }
    catch (const std::runtime_error &r) { runtime++; assert(std::string(r.what()) == "number one"); }
  }
  assert(runtime == 1 && range == 1);
}

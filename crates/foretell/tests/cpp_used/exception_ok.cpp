#include <cassert>
#include <exception>
#include <stdexcept>
#include <thread>
int main() {
  std::exception_ptr e;
  std::thread a([&] { try { throw std::runtime_error("bad"); } catch (...) { e = std::current_exception(); } });
  a.join();
  bool caught = false;
  try { if (e) std::rethrow_exception(e); } catch (const std::runtime_error &) { caught = true; }
  assert(caught);
}
